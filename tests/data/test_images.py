"""Images in folders and in CIFAR's files: pixels, colours, classes, test sets, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from handgrad.data import load, load_features, read_cifar, read_images
from handgrad.errors import DataError

H, V = 3, 5


def draw(folder: Path, *names: str, colours: int = 3, size: tuple[int, int] = (H, V)) -> list[np.ndarray]:
    """Write an image of random pixels for each name, and return their pixels."""
    drawn = []
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(len(str(folder / name))).integers(0, 256, (*size, colours), np.uint8)
        Image.fromarray(pixels[..., 0] if colours == 1 else pixels).save(folder / name)
        drawn.append(pixels)
    return drawn


def test_a_folder_of_images_for_each_class(tmp_path: Path) -> None:
    """By name; what is no image is passed over."""
    pixels = draw(tmp_path, "b/first.png", "a/longer name.png", "b/2nd.bmp")
    (tmp_path / "a" / "notes.txt").write_text("no image")
    data = load(tmp_path)
    assert data.classes == ("a", "b")
    assert (data.x.dtype, data.test_rows) == (np.uint8, 0)
    np.testing.assert_array_equal(data.x, [pixels[1], pixels[2], pixels[0]])
    assert data.t.tolist() == [0, 1, 1]


def test_grey_images_have_one_channel_unless_others_have_colours(tmp_path: Path) -> None:
    (grey,) = draw(tmp_path, "a/1.png", colours=1)
    draw(tmp_path, "b/22.png", colours=1)
    assert read_images(tmp_path).x.shape == (2, H, V, 1)
    draw(tmp_path, "b/333.png")
    data = read_images(tmp_path)
    assert data.x.shape == (3, H, V, 3)
    np.testing.assert_array_equal(data.x[0], np.repeat(grey, 3, axis=2))


def test_images_without_classes_are_rows_to_predict_for(tmp_path: Path) -> None:
    """Those of a folder by name, or one alone."""
    pixels = draw(tmp_path, "b.png", "a longer one.png")
    np.testing.assert_array_equal(load_features(tmp_path), pixels[::-1])
    np.testing.assert_array_equal(load_features(tmp_path / "b.png"), pixels[:1])


def test_train_and_test_folders_fix_the_test_rows(tmp_path: Path) -> None:
    draw(tmp_path, "train/a/1.png", "train/b/2.png", "test/a/3.png", "train/b/4.png")
    data = load(tmp_path)
    assert (data.classes, data.t.tolist(), data.test_rows) == (("a", "b"), [0, 1, 1, 0], 1)


def test_classes_are_those_of_both_folders(tmp_path: Path) -> None:
    """One may be in the test images alone; without test images there is no fixed test set."""
    draw(tmp_path, "train/a/1.png", "train/c/2.png")
    assert (load(tmp_path).t.tolist(), load(tmp_path).test_rows) == ([0, 1], 0)
    draw(tmp_path, "test/b/3.png", "test/c/4.png")
    data = load(tmp_path)
    assert (data.classes, data.t.tolist(), data.test_rows) == (("a", "b", "c"), [0, 2, 1, 2], 2)
    draw(tmp_path, "val/a/5.png")
    with pytest.raises(DataError, match=r"val: would not be read, as validation rows are drawn from .*train"):
        load(tmp_path)


def test_sixteen_bits_of_grey_become_eight(tmp_path: Path) -> None:
    """Nothing above 255 is white; a mode without a largest value is refused."""
    pixels = np.random.default_rng(0).integers(0, 2**16, (H, V), np.uint16)
    path = tmp_path / "1.png"
    Image.fromarray(pixels).save(path)
    np.testing.assert_array_equal(load_features(path)[0, ..., 0], pixels // 256)
    Image.fromarray(pixels.astype(np.float32)).save(path, format="TIFF")
    with pytest.raises(DataError, match=r"1.png: the mode is 'F', which has no largest value"):
        load_features(path)


def test_what_is_wrong_with_images_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: there is no such file"):
        read_images(tmp_path / "nowhere")
    with pytest.raises(DataError, match="there are no images"):
        read_images(tmp_path)
    draw(tmp_path, "a/1.png", "b/2.png")
    draw(tmp_path, "b/3.png", size=(H, V + 1))
    with pytest.raises(DataError, match=r"3.png: 6 × 3 pixels, and .*1.png has 5 × 3"):
        load(tmp_path)
    (tmp_path / "b" / "3.png").write_bytes(b"PNG, or not")
    with pytest.raises(DataError, match=r"3.png: the file cannot be read: cannot identify image file"):
        load(tmp_path)
    good = (tmp_path / "a" / "1.png").read_bytes()
    (tmp_path / "b" / "3.png").write_bytes(good[: len(good) // 2])
    with pytest.raises(DataError, match=r"3.png: the file cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize("classes", [10, 100])
def test_cifar_is_a_plane_for_each_colour(tmp_path: Path, classes: int) -> None:
    """The label is the last byte before the image; CIFAR-100 has a coarser one before it."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (7, 3, 32, 32), np.uint8), np.array([3, 1, 9, 0, 2, 2, 8], np.uint8)
    before = [labels[:, None]] if classes == 10 else [labels[:, None] // 3, labels[:, None]]
    records = np.concatenate([*before, images.reshape(7, -1)], axis=1)
    batches = {f"data_batch_{k}.bin": slice(k - 1, k) for k in (5, 3, 1, 4, 2)}
    cuts = (
        batches | {"test_batch.bin": slice(5, 7)}
        if classes == 10
        else {"train.bin": slice(0, 5), "test.bin": slice(5, 7)}
    )
    names = [*cuts]
    for name, cut in cuts.items():
        (tmp_path / name).write_bytes(records[cut].tobytes())
    data = load(tmp_path)
    assert (len(data.classes), data.test_rows) == (classes, 2)
    assert data.t.tolist() == labels.tolist()
    np.testing.assert_array_equal(data.x[4, 6, 30], images[4, :, 6, 30])
    meta = {10: "batches.meta.txt", 100: "fine_label_names.txt"}[classes]
    (tmp_path / meta).write_text("\n".join(f"name{k}" for k in range(classes)) + "\n\n")
    assert read_cifar(tmp_path).classes[3] == "name3"
    (tmp_path / names[0]).write_bytes(b"short")
    with pytest.raises(DataError, match=r"\.bin: 5 bytes, and images of \d+ bytes each are needed"):
        load(tmp_path)
    (tmp_path / names[0]).unlink()
    with pytest.raises(DataError, match=f"{names[0]}: there is no such file"):
        load(tmp_path)
