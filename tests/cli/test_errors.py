"""What a person does wrong at the command line: one message each, with the place and the values; no traceback."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import handgrad
from handgrad.cli import COMMANDS
from handgrad.cli.options import REMEDIES, SETTINGS

from ..conftest import Command
from .wrong_files import write_wrong

WRONG: dict[str, tuple[int, str]] = {
    # data, settings and runs
    "train nowhere.csv --target kept": (1, "nowhere.csv: there is no such file"),
    "train net.toml --config moons.toml": (1, "two configurations are given, net.toml and --config moons.toml"),
    "show gpt5": (1, "gpt5: there is no data set, no run and no network of this name"),
    "train nowhere": (1, "nowhere: there is no built-in data set and no folder of this name"),
    "train pets.doc": (1, "pets.doc: files that end in .doc are not read"),
    # texts
    "train nowhere.txt": (1, "nowhere.txt: there is no such file"),
    "train short.txt": (1, "short.txt: 5 characters, and a window of 128 with the one after it needs 129"),
    "train empty.txt": (1, "empty.txt: 0 characters, and a window of 128 with the one after it needs 129"),
    "train latin.txt": (1, "latin.txt, line 1: not UTF-8: it has the byte 0xe9"),
    "train same.txt --context 2": (1, "same.txt: there is one class, 'a', and two or more are needed"),
    "train short.txt --context 4": (1, "short.txt: no training row is left of 1, as test takes 1 and validation 1"),
    "train rhyme.txt --context 4 --standardise feature": (1, "--standardise: rhyme.txt holds characters of a text, which have neither mean nor deviation"),
    "train alice --target kept": (1, "alice: target is 'kept', and this source has its own target"),
    "train alice --hidden 8": (1, "--hidden: network.transformer sets this already"),
    "train alice --context 8 --heads 3": (1, "SelfAttention(128, heads=3, causal=True, initialiser='small_normal'): 128 features are not 3 heads of equally many"),
    "train digits --width 8": (1, "network.transformer: digits is no text"),
    "train digits --context 8": (1, "digits: context is for texts and tables, and this source is neither"),
    "train prices.csv --target price --context 900": (1, "prices.csv: 60 rows, and a window of 900 with the row after it needs 901"),
    "train prices.csv --target price --context 8": (1, "--hidden: a row of the data has the shape (8, 4), and one axis is needed"),
    "evaluate runs/text short.txt": (1, "short.txt, line 2: the character 'c' is not one that the network was trained on"),
    "generate runs/text --prompt xyzé": (1, "--prompt, line 1: the character 'x' is not one that the network was trained on"),
    "generate runs/pets": (1, "runs/pets: was not trained on a text"),
    "generate runs/nowhere": (1, "runs/nowhere/run.json: No such file or directory"),
    "generate runs/text --tokens 0": (2, "Invalid value for '--tokens': 0 is not in the range 1<=x<=1000000."),
    "generate runs/text --temperature nan": (2, "Invalid value for '--temperature': 'nan' is not a number."),
    "predict runs/text rhyme.txt": (1, "runs/text: was trained on a text, and does not answer row by row"),
    "train pets.csv": (1, "pets.csv: no target is named, and a table needs one"),
    "train pets.csv --target keep": (1, "pets.csv: there is no column 'keep'"),
    "train one.csv --target kept": (1, "one.csv: there is one class, 'yes', and two or more are needed"),
    "train bars.csv --target kept": (1, "bars.csv: there is one column, 'width|kept', and it looks separated by '|'"),
    "train dollars.csv --target price": (1, "dollars.csv, target price: the target is text, '$1,000' in the first row, and looks like numbers"),
    "train ids.csv --target name": (1, "ids.csv, target name: the target is text, 'r0' in the first row, so classes, and nearly every one differs: 30 different ones in 30 rows"),
    "train empty.csv --target kept": (1, "empty.csv: the first line is empty"),
    "train header.csv --target kept": (1, "header.csv: the file has a header and no rows"),
    "train text.csv --target kept": (1, "text.csv, line 4: column 'height' holds 'tall', and a finite number is needed"),
    "train pets.csv --target kept --drop kept": (1, "pets.csv: the column 'kept' is both dropped and the target"),
    "train pets.csv --target kept --drop 'width\nage'": (1, "--drop: 'width\\nage' is not a list of names"),
    "train pets.csv --target kept --drop width,height,age": (1, "pets.csv: no column is left to predict from"),
    "train names.csv --target kept": (1, "names.csv: no column has anything to learn from"),
    "train pets.npz --only width": (1, "pets.npz: columns of tables are chosen by name, and this source is no table"),
    "train pets.csv --target kept --task regression": (1, "pets.csv, line 2: column 'kept' holds 'no', and a finite number is needed"),
    "train pets.csv --target kept --task clasification": (1, "--task is 'clasification'"),
    "train prices.csv --target price --task classification": (1, "prices.csv, target price: the target of row 0 is 6.9, and classes are text or whole numbers"),
    "train torn": (1, "torn/t10k-images-idx3-ubyte: the file is cut short: 60 bytes of data expected, 55 found"),
    "train other": (1, "other/t10k-labels-idx1-ubyte: not an IDX file: it begins with 50 4e 47 2c, and must begin, in hexadecimal, with 00 00, a type (08, 09, 0b, 0c, 0d, 0e) and a rank from 01 to 20"),
    "train 'a file'": (1, "a file: files whose name has no ending are not read"),
    "show ''": (1, "the data has no name"),
    "train ''": (1, "the data has no name"),
    "predict runs/pets torn/t10k-images-idx3-ubyte": (1, "torn/t10k-images-idx3-ubyte: the file is cut short: 60 bytes of data expected, 55 found"),
    "predict runs/pets other/t10k-labels-idx1-ubyte": (1, "other/t10k-labels-idx1-ubyte: not an IDX file: it begins with 50 4e 47 2c, and must begin, in hexadecimal, with 00 00, a type (08, 09, 0b, 0c, 0d, 0e) and a rank from 01 to 20"),
    "train x.npy": (1, "x.npy: no target is named, and its targets are in another file"),
    "train x.npy --target a,b": (1, "x.npy: target is ['a', 'b'], and must be the path of one file"),
    "train x.npy --target wide.npy": (1, "x.npy: x has 60 rows and t has shape (4, 7); rows must agree"),
    "train pets.npz --target kept": (1, "pets.npz: target is 'kept', and this source has its own target"),
    "train digits --target kept": (1, "digits: target is 'kept', and this source has its own target"),
    "train --target kept": (1, "digits: target is 'kept', and this source has its own target"),
    "train pets.csv --target kept --loss MeanSquaredError": (1, "pets.csv holds classes, and MeanSquaredError() is for values"),
    "train prices.csv --target price --loss SoftmaxCrossEntropy": (1, "prices.csv holds values, and SoftmaxCrossEntropy() is for classes"),
    "train three.csv --target kept --loss BinaryCrossEntropy": (1, "three.csv has 3 classes, and BinaryCrossEntropy() is for two"),
    "train prices.csv --target price --loss BinaryCrossEntropy": (1, "BinaryCrossEntropy(): the target of row 0 is 6.9, and must be from 0 to 1"),
    "train --activation rellu": (1, "--activation: 'rellu' is unknown"),
    "train --optimiser Adm": (1, "--optimiser: 'Adm' is unknown"),
    "train --schedule cosin": (1, "--schedule: 'cosin' is unknown"),
    "train --loss SoftMax": (1, "--loss: 'SoftMax' is unknown"),
    "train --normalisation bacth": (1, "--normalisation is 'bacth'"),
    "train --dtype float16": (1, "--dtype is 'float16'"),
    "train --engine refrence": (1, "--engine: 'refrence' is unknown"),
    "train --devices 2": (1, "--devices: devices are of the jax engine, and the engine is compiled"),
    "train --cluster --engine reference": (1, "--cluster is given, and the engine reference trains in one"),
    "train alone.toml --cluster": (1, "--cluster is given, and the engine compiled trains in one"),
    "train --standardise yes": (1, "--standardise is 'yes'"),
    "train --batch-size 0": (1, "--batch-size is 0"),
    "train --epochs 0": (1, "--epochs is 0"),
    "train --epochs many": (2, "Invalid value for '--epochs': 'many' is not a valid integer."),
    "train --patience 0": (1, "--patience is 0"),
    "train --seed -1": (1, "--seed is -1"),
    "train --seed 9223372036854775808": (1, "--seed is 9223372036854775808"),
    "train --dropout 1.5": (1, "--dropout is 1.5"),
    "train --dropout nan": (1, "--dropout is nan"),
    "train --hidden 12,x": (1, "--hidden: '12,x' is not a list of sizes"),
    "train --hidden 12,0": (1, "--hidden[1] is 0"),
    "train --class-weight 1,x": (1, "--class-weight: '1,x' is not a list of numbers"),
    "train --class-weight 1,2": (1, "--class-weight: 2 numbers, and digits has 10 classes"),
    "train moons --class-weight=-1,2": (1, "SoftmaxCrossEntropy: class_weight is [-1.0, 2.0]"),
    "train prices.csv --target price --class-weight balanced": (1, "--class-weight: MeanSquaredError() takes no class weights"),
    "train --test 1": (1, "--test is 1.0"),
    "train --validation -0.1": (1, "--validation is -0.1"),
    "train --test 0.9 --validation 0.1": (1, "digits: no training row is left of 1797, as test takes 1617 and validation 180"),
    "train --validation 0 --patience 3": (1, "--patience: there are no validation rows to watch"),
    "train --learning-rate 0": (1, "--learning-rate: Adam: learning_rate is 0.0"),
    "train --learning-rate inf": (1, "--learning-rate: Adam: learning_rate is inf"),
    "train --momentum 0.9": (1, "--momentum: Adam has no such setting"),
    "train --optimiser SGD --momentum 1": (1, "--momentum: SGD: momentum is 1.0"),
    "train --weight-decay -1": (1, "--weight-decay: Adam: weight_decay is -1.0"),
    "train --clip-norm 0": (1, "--clip-norm: Adam: clip_norm is 0.0"),
    "train --out 'a file'/run": (1, "a file/run: cannot be written: Not a directory"),
    "train --out 'a file'": (2, "Invalid value for '--out': Directory 'a file' is a file."),
    "train --config lenett": (1, "lenett: No such file or directory"),
    "train --config resnet": (1, "--config resnet: this recipe has no data of its own"),
    "train --config nowhere.toml": (1, "nowhere.toml: No such file or directory"),
    "predict runs/nowhere pets.csv": (1, "runs/nowhere/run.json: No such file or directory"),
    "predict runs/pets nowhere.csv": (1, "nowhere.csv: there is no such file"),
    "predict runs/pets narrow.csv": (1, "narrow.csv: there is no column 'age'"),
    "predict runs/pets text.csv": (1, "text.csv, line 4: column 'height' holds 'tall', and a finite number is needed"),
    "predict runs/pets empty.csv": (1, "empty.csv: the first line is empty"),
    "predict runs/pets header.csv": (1, "header.csv: there is no column 'height'"),
    "predict runs/pets wide.npy": (1, "the data has rows of (7,), the network takes (3,)"),
    "predict runs/pets pets.csv --out 'a file'/answers.csv": (1, "a file/answers.csv: cannot be written: a file is no folder"),
    "predict runs/prices prices.csv --probabilities": (2, "--probabilities is for classes, and this run predicts values."),
    "predict runs/pets x.npy --keep age": (1, "x.npy: columns of tables are kept by name, and this source is no table"),
    "predict runs/pets pets.csv --json --out new.parquet": (2, "--json is text, and --out names a Parquet file."),
    "predict runs/pets pets.csv --out ./pets.csv": (2, "--out names the file of the rows themselves: give another name."),
    "predict runs/pets": (2, "Missing argument 'SOURCE'."),
    "evaluate runs/nowhere": (1, "runs/nowhere/run.json: No such file or directory"),
    "evaluate runs/pets maybe.csv": (1, "maybe.csv: the class 'maybe' is not one of the run's"),
    "evaluate runs/pets far.csv": (1, "far.csv: the loss of these rows is not finite"),
    "evaluate runs/pets narrow.csv": (1, "narrow.csv: there is no column 'age'"),
    "evaluate runs/pets moons": (1, "moons: there is no column 'width', which the run was trained on"),
    "evaluate runs/pets prices.csv": (1, "prices.csv: there is no column 'kept'"),
    "evaluate runs/pets x.npy": (1, "x.npy: no target is named, and its targets are in another file"),
    "evaluate runs/pets wide.npy --target t.npy": (1, "wide.npy: x has 4 rows and t has shape (60,); rows must agree"),
    "evaluate runs/pets x.npy --target wide.npy": (1, "wide.npy: classification takes one target, and this one has shape (4, 7)"),
    "evaluate runs/pets one.csv": (1, "one.csv: there is one class, 'yes', and two or more are needed"),
    "evaluate runs/pets digits": (1, "the data has rows of (64,), the network takes (3,)"),
    "evaluate runs/prices pets.csv --target kept": (1, "pets.csv, line 2: column 'kept' holds 'no', and a finite number is needed"),
    "export runs/nowhere --torch w.safetensors": (1, "runs/nowhere/run.json: No such file or directory"),
    "export runs/pets": (2, "Nothing to write: give --onnx FILE or --torch FILE."),
    "export runs/pets --torch w.safetensors --prediction": (2, "--prediction and --without-standardisation are for --onnx FILE."),
    "export runs/pets --torch 'a file'/w.safetensors": (1, "a file/w.safetensors: cannot be written: a file is no folder"),
    "export runs/pets --torch runs": (2, "Invalid value for '--torch': File 'runs' is a directory."),
    "show runs/nowhere": (1, "runs/nowhere: there is no built-in data set and no folder of this name"),
    "show gpt2 --hidden 3": (1, "gpt2 is a published network, which has its own settings"),
    "show runs/pets --epochs 3": (1, "runs/pets is a run, which has its own settings"),
    "show runs/pets --config x.toml": (1, "runs/pets is a run, which has its own settings"),
    "write --out 'a file'/x": (1, "a file/x/train.py: cannot be written: Not a directory"),
    "trian": (2, "No such command 'trian'. Did you mean 'train'?"),
    "train --activatoin tanh": (2, "No such option '--activatoin'. Did you mean '--activation'?"),
    "predit": (2, "No such command 'predit'. Did you mean 'predict'?"),
    "quite-another": (2, f"No such command 'quite-another'. Choose from {', '.join(sorted(COMMANDS))}"),
    "train pets.csv more.csv": (2, "Got unexpected extra argument (more.csv)"),
    # settings in a file
    "train --config broken.toml": (1, "broken.toml: not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    "train --config deep.toml": (1, "deep.toml: a key has more than 30 parts, and settings have 3 at most"),
    "train --config large.toml": (1, "large.toml: larger than 1,048,576 bytes, the most that settings may have"),
    "train --config slip.toml": (1, "slip.toml, line 2: training.epoch: there is no such setting"),
    "train --config table.toml": (1, "table.toml, line 1: trainin: there is no such setting"),
    "train --config type.toml": (1, "type.toml, line 2: training.epochs is '3'"),
    "train --config share.toml": (1, "share.toml, line 2: data.test is 'half'"),
    "train --config scalar.toml": (1, "scalar.toml, line 1: training is 3"),
    "train --config twice.toml": (1, "twice.toml, line 2: network.hidden: network.layers sets this already"),
    "train --config number.toml": (1, "number.toml, line 2: network.layers[0] is 3"),
    "train --config untyped.toml": (1, "untyped.toml, line 2: network.layers[0] is {'inputs': 64}"),
    "train --config kind.toml": (1, "kind.toml, line 2: network.layers[0].type: 'Liner' is unknown"),
    "train --config sizes.toml": (1, "sizes.toml, line 2: network.layers[0]: Linear needs inputs"),
    "train --config setting.toml": (1, "setting.toml, line 2: network.layers[0].input: Linear has no such setting"),
    "train --config zero.toml": (1, "zero.toml, line 2: network.layers[0]: Linear: outputs is 0"),
    "train --config vast.toml": (1, "network.layers: Linear(64, 9007199254740993) gives 9007199254740993 outputs, and digits with SoftmaxCrossEntropy() needs 10"),
    "train --config word.toml": (1, "word.toml, line 2: network.layers[0].inputs is '64'"),
    "train --config start.toml": (1, "layer 2, Linear(64, 10, initialiser='he'): no initialiser is called 'he'"),
    "train --config rate.toml": (1, "rate.toml, line 2: network.layers[0]: Dropout: rate is 2.0"),
    "train --config negative.toml": (1, "layer 2, LeakyReLU(slope=nan): slope is nan"),
    "train --config residual.toml": (1, "residual.toml, line 2: network.layers[0].layers is 3"),
    "train --config inner.toml": (1, "inner.toml, line 2: network.layers[0].layers[0].type: 'Tanhh' is unknown"),
    "train --config unequal.toml": (1, "layer 2, Residual: axis A... is (n, 64) in x(n, 64)[0:2] but (n, 10) in y(n, 10)[0:2]"),
    "train --config late.toml": (1, "layer 3, Standardise(): Standardise takes the data itself"),
    "train --config fewer.toml": (1, "network.layers: Linear(64, 9) gives 9 outputs, and digits with SoftmaxCrossEntropy() needs 10"),
    "train --config momentum.toml": (1, "momentum.toml, line 2: training.optimiser: SGD: nesterov needs a momentum"),
    "train --config beta.toml": (1, "beta.toml, line 2: training.optimiser: Adam: beta1 is 1.0"),
    "train --config epsilon.toml": (1, "epsilon.toml, line 2: training.optimiser: RMSProp: epsilon is 0.0"),
    "train --config steps.toml": (1, "steps.toml, line 2: training.schedule: StepDecay: every is 0"),
    "train --config cosine.toml": (1, "cosine.toml, line 2: training.schedule: Cosine: final is -1.0"),
    "train --config cycle.toml": (1, "cycle.toml, line 2: training.schedule: OneCycle: rising is 0.0"),
    "train --config smoothing.toml": (1, "smoothing.toml, line 2: network.loss: SoftmaxCrossEntropy: smoothing is 1.0"),
    "train --config penalty.toml": (1, "penalty.toml, line 2: network.loss: SoftmaxCrossEntropy: l2 is -1.0"),
    "train --config weightless.toml": (1, "SoftmaxCrossEntropy(l2=0.1): the network has no weights that l2 could keep small"),
    "train --config half.toml": (1, "digits holds classes, and HalfSquaredError(l2=0.1) is for values"),
    "train moons --config half.toml": (1, "moons holds classes, and HalfSquaredError(l2=0.1) is for values"),
    "train prices.csv --target price --config half.toml": (1, "HalfSquaredError: l2 is 0.1 beside a sum of rows"),
    "train --config delta.toml": (1, "delta.toml, line 2: network.loss: Huber: delta is 0.0"),
    "train --config positive.toml": (1, "positive.toml, line 2: network.loss: BinaryCrossEntropy: positive_weight is 0.0"),
    "train --config weights.toml": (1, "weights.toml, line 2: network.loss: SoftmaxCrossEntropy: class_weight is [1.0, -1.0]"),
    "train --config words.toml": (1, "x[0, 2] is 5, and an index is a whole number from 0 to 4"),
    "train --config lookup.toml": (1, "network.layers: Embedding(5, 2) gives 2 outputs, and digits with SoftmaxCrossEntropy() needs 10"),
    "train --config second.toml": (1, "layer 3, Embedding(5, 2): z1 holds values, and indices are wanted"),
    "train --config pets.npz": (1, "pets.npz: not TOML: 'utf-8' codec can't decode byte 0xb1 in position 16: invalid start byte"),
    "train --config runs": (2, "Invalid value for '--config': File 'runs' is a directory."),
    # damaged data
    "train again.csv --target kept": (1, "again.csv: columns 1 and 2 have the same name, 'width'"),
    "train unnamed.csv --target kept": (1, "unnamed.csv: column 2 of 3 has no name"),
    "train ragged.csv --target kept": (1, "ragged.csv, line 3: 3 cells found, and 2 expected, one a column"),
    "train long.csv --target kept": (1, "long.csv: the file cannot be read: field larger than field limit (131072)"),
    "train latin.csv --target kept": (1, "latin.csv, line 1: not UTF-8: it has the byte 0xf6"),
    "train folder.csv --target kept": (1, "folder.csv: target is 'kept', and this source has its own target"),
    "train prices.csv --target price,price": (1, "prices.csv: the target 'price' is named twice"),
    "train prices.csv --target width,height,age,price": (1, "prices.csv: every column is a target, and one feature or more is needed"),
    "train both.csv --target price,rent --task classification": (1, "both.csv: classification takes one target, and 2 are named"),
    "train pets.csv --target kept,age": (1, "pets.csv, line 2: column 'kept' holds 'no', and a finite number is needed"),
    "train text.npy --target t.npy": (1, "text.npy: the array's header cannot be read: EOF: reading array header, expected 1869422703 bytes got 2"),
    "train no.npy --target t.npy": (1, "no.npy: the array's header cannot be read: EOF: reading magic string, expected 8 bytes got 5"),
    "train short.npy --target t.npy": (1, "short.npy: 96 bytes of data expected by the header, 87 found"),
    "train complex.npy --target t.npy": (1, "complex.npy: the array has dtype complex128, and numbers are needed"),
    "train objects.npy --target t.npy": (1, "objects.npy: the array has dtype object, and numbers are needed"),
    "train none.npy --target t.npy": (1, "none.npy: the array has shape (0, 3), and one axis or more of 1 or more is needed"),
    "train scalar.npy --target t.npy": (1, "scalar.npy: the array has shape (), and one axis or more of 1 or more is needed"),
    "train nan.npy --target t.npy": (1, "nan.npy: x has 1 rows and t has shape (60,); rows must agree"),
    "train nothing.npz": (1, "nothing.npz: there is no array x or X"),
    "train nan.npz": (1, "nan.npz: x[0, 1] is inf, and must be finite"),
    "train flat.npz": (1, "flat.npz: x has shape (2,), and one row or more of one feature or more is needed"),
    "train fewer.npz": (1, "fewer.npz: x has 3 rows and t has shape (2,); rows must agree"),
    "train texts.npz --task regression": (1, "texts.npz, t.npy: the target is text, and regression needs numbers"),
    "train coo.npz --target t.npy": (1, "coo.npz: a sparse matrix in the layout 'coo', and csr and csc are read"),
    "train square.npz --target t.npy": (1, "square.npz: not a sparse matrix of scipy's: the arrays are data (2, 2), indices (2,), indptr (3,), shape (2,)"),
    "train endless.npz --target t.npy": (1, "endless.npz: a sparse matrix of 2 by 9223372036854775807 numbers is too large"),
    "train layouts.npz --target t.npy": (1, "layouts.npz/format.npy: the array has shape (2,), and a single value is needed"),
    "train letters.npz": (1, "letters.npz/x.npy: the array has dtype <U1, and numbers are needed"),
    "train deep.npz": (1, "--hidden: a row of the data has the shape (2, 2), and one axis is needed"),
    "train no.npz": (1, "no.npz: the file cannot be read: File is not a zip file"),
    "train packed.npz": (1, "packed.npz: x.npy is packed otherwise than NumPy does"),
    "train bomb.npz": (1, "bomb.npz: the file claims 320320256 bytes of contents, and 268435456 is the limit for a compressed file of 311760 bytes"),
    "train images": (1, "images: train has images of (2, 2) pixels and t10k of (3, 3); they must agree"),
    "train labels": (1, "labels: train has 4 images and 3 labels; they must agree"),
    "train unlabelled": (1, "unlabelled: there is no file t10k-labels-idx1-ubyte"),
    "train flat": (1, "flat/t10k-images-idx3-ubyte: bytes of rank 3 expected, uint8 of rank 1 found"),
    "train cut": (1, "cut/t10k-images-idx3-ubyte: the file is cut short: 12 bytes of sizes expected, 2 found"),
    "train no.parquet --target t": (1, "no.parquet: the file cannot be read: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file."),
    "train none.parquet --target t": (1, "none.parquet: the file has columns and no rows"),
    "train lists.parquet --target t": (1, "lists.parquet: column 'a' is of type list<element: int64>, and numbers, texts or dates are needed"),
    "train gap.parquet --target t": (1, "gap.parquet, row 0, counted from 0: the target is empty, as in every row"),
    "train moons --task regression": (1, "moons: task is 'regression', and this source is for classification"),
    "train digits --task regression": (1, "digits: task is 'regression', and this source is for classification"),
    # runs
    "predict runs/pets nan.npy": (1, "nan.npy: x[0, 2] (feature 'age') is nan, and must be finite"),
    "predict runs/pets none.npy": (1, "none.npy: the array has shape (0, 3), and one axis or more of 1 or more is needed"),
    "predict runs/pets folder.csv": (1, "folder.csv: the file cannot be read: Is a directory"),
    "predict runs/pets bomb.npz": (1, "bomb.npz: the file claims 320000128 bytes of contents, and 268435456 is the limit for a compressed file of 311760 bytes"),
    "predict runs/pets x.txt": (1, "x.txt: there is no such file"),
    "predict runs/pets digits": (1, "digits: there is no such file"),
    "predict pets.csv pets.csv": (2, "Invalid value for 'RUN': Directory 'pets.csv' is a file."),
    "evaluate runs/all": (1, "runs/all: there are no test rows"),
    "evaluate runs/changed": (1, "changed.csv: the data has changed since the run: x has 25 rows, and had 60"),
    "explain runs/changed": (1, "changed.csv: the data has changed since the run: x has 25 rows, and had 60"),
    "explain runs/all --config x.toml": (1, "runs/all is a run, which has its own settings"),
    "evaluate runs/unfinished": (1, "runs/unfinished/run.json: No such file or directory"),
    "predict runs/unfinished pets.csv": (1, "runs/unfinished/run.json: No such file or directory"),
    "show runs/unfinished": (1, "runs/unfinished/run.json: No such file or directory"),
    "train --resume runs/nowhere": (1, "runs/nowhere: there is no training to resume"),
    "train --resume runs": (1, "runs: there is no training to resume"),
    "train --resume runs/unfinished --batch-size 99": (1, "--batch-size is 99, and the run in runs/unfinished has 3"),
    "train pets.csv --target kept --out runs/pets": (1, "runs/pets: holds a run"),
    "evaluate runs/estimator": (1, "runs/estimator: holds an estimator, whose training data is not known"),
    "train pets.csv --target kept --out runs/replaced --overwrite": (1, "runs/replaced/new: holds notes.txt, which is no run's, and the new run is written there first"),
    "train commas.csv --target t": (1, "commas.csv, line 3: column 'size' holds '1.500', and column 'size' in line 2 '1,5'"),
    "train pets.csv --target kept --out mine": (1, "mine: holds history.csv, though no run, and a run has a file of that name"),
    "show pets.csv --target kept --learning-rate find": (1, "--learning-rate: only a new training finds it"),
    "train --resume runs/unfinished": (1, "d.csv: there is no such file"),
    "train --resume runs/pets --out x": (2, "Give --out or --resume: a training is resumed in its own folder."),
    "predict runs/own pets.csv": (1, "runs/own/run.json: the network has a Mine, which is not handgrad's; it was defined in mine.py"),
    "predict runs/linked pets.csv": (1, "runs/linked/weights.safetensors: is a link that leads out of the folder"),
    "evaluate runs/large": (1, "runs/large/run.json: 134,217,728 bytes, and a run's has at most 67,108,864"),
    "explain runs/snapshots": (1, "runs/snapshots/snapshots.jsonl:1: damaged, or no snapshot of handgrad: Object missing required field `epoch`"),
    "train --resume runs/checkpoint": (1, "runs/checkpoint/checkpoint.safetensors: damaged, or no safetensors file: Error while deserializing header: header too small"),
    # options
    "train --snapshots 1": (2, "Invalid value for '--snapshots': 1 is not in the range 2<=x<=1000."),
    "train --checkpoint-minutes -1": (2, "Invalid value for '--checkpoint-minutes': -1.0 is not in the range 0<=x<=1000000."),
    "train --checkpoint-minutes nan": (2, "Invalid value for '--checkpoint-minutes': 'nan' is not a number."),
    "train prices.csv --target price --loss Poisson": (1, "Poisson(): the target of row 1 is -0.3, and must be 0 or more"),
    "train --target ''": (1, "digits: target is '', and this source has its own target"),
    "train both.csv --target price,rent --test 0.99999": (1, "both.csv: no training row is left of 60, as test takes 60 and validation 6"),
    "sweep": (2, "Missing option '--over'."),
    "sweep --over training.seed": (1, "--over training.seed: training.seed has no values"),
    "sweep --over training.seed=1 --over training.seed=2": (1, "--over training.seed=2: training.seed is given twice"),
    "sweep --over learning-rate=0.1": (1, "--over learning-rate=0.1: no setting is called 'learning-rate'"),
    "sweep --over training.batch_size=8,x": (1, "--over batch_size=x: training.batch_size is 'x'"),
    "sweep --over training.seed=1 --validation 0": (1, "--over seed=1: data.validation is 0, and trainings are compared by their validation rows"),
    "sweep pets.csv --target kept --over training.seed=1 --out runs/pets": (1, "runs/pets: holds a run"),
    "bench nowhere": (1, "nowhere: there is no built-in data set and no folder of this name"),
    "bench runs/all --seconds 0": (2, "Invalid value for '--seconds': 0.0 is not in the range 0<x<=3600."),
    "bench moons --seconds nan": (2, "Invalid value for '--seconds': 'nan' is not a number."),
    "bench moons --optimiser SGD --learning-rate 1e30": (1, "the loss of step 2 is not finite"),
    # functions of one's own
    "check": (2, "Give a file, or --rules alone."),
    "check --rules pets.csv": (2, "Give a file, or --rules alone."),
    "check --rules --fix": (2, "Give a file, or --rules alone."),
    "check --seed -1 --rules": (2, "Invalid value for '--seed': -1 is not in the range x>=0."),
    "check nowhere.py": (2, "nowhere.py: there is no such file"),
    "check runs": (2, "runs: is a folder"),
    "check pets.csv": (2, "pets.csv: is no Python file"),
    "check syntax.py": (2, "syntax.py:1: SyntaxError: invalid syntax"),
    "check bytes.py": (2, "bytes.py: SyntaxError: source code string cannot contain null bytes"),
    "check long.py": (2, "long.py: an expression is nested too deep to be read"),
    "check longer.py": (2, "longer.py: an expression is nested too deep to be read"),
    "check missing.py": (2, "missing.py:2: ModuleNotFoundError: No module named 'nowhere_at_all'"),
    "check exits.py": (2, "exits.py:2: SystemExit: 3"),
    "check nothing.py": (2, "nothing.py: there is nothing to check in it"),
    "check one_sided.py": (2, "one_sided.py: 'backward' is missing"),
    "check number.py": (2, "number.py: 'forward' is no function"),
    "check no_inputs.py --gradient dW1": (2, "--gradient dW1: give the gradient and whose it is, as in --gradient dW1=W1."),
    "check swish.py:swich": (2, "swish.py: there is no 'swich' in it"),
    "check swish.py:swish": (2, "swish.py: 'swish_backward' is missing"),
    "check ends.py": (2, "the file ends Python when it is imported or called"),
    "check undefined.py": (2, "forward raised NameError: name 'y' is not defined"),
    "check takes.py": (2, "forward does not take the inputs: missing a required argument: 'W'"),
    "check text.py": (2, "forward returns <U1, not an array of real numbers"),
    "check fickle.py": (2, "forward returns something else when it is called again on the same inputs"),
    "check infinite.py": (2, "forward is not finite at these inputs"),
    "check empty.py": (2, "there are no inputs"),
    "check whole.py": (2, "no input is of floating point, so there is nothing to differentiate"),
    "check nan.py": (2, "the input 'x' is not finite"),
    "check word.py": (2, "the input 'x' is <U4, not an array of real numbers"),
    "check uneven.py": (2, "the input 'x' is no array: its rows have different lengths"),
    "check named.py": (2, "an input is called 1"),
    "check draws.py": (2, "the function of the inputs raised NameError: name 'nowhere' is not defined"),
    "check vast.py": (2, "the inputs have 1,000,000,000 entries, and 20,000,000 are the most"),
    "check two.py": (2, "backward returns 2 gradients, and there are 1 inputs"),
    "check none.py": (2, "backward returns no gradient of an input of floating point"),
    "check other.py": (2, "backward returns a gradient for 'W', which is no input"),
    "check nobody.py": (2, "backward returns no gradient of an input of floating point"),
    "check said.py": (2, "backward's dx is <U1, not an array of real numbers"),
    "check jagged.py": (2, "backward's dx is no array: its rows have different lengths"),
    "check network.py:network": (2, "Network(Linear(2, 3)) has no loss"),
    "check no_backward.py:square": (2, "square (no_backward.py:3): no backward is written for square"),
    "check no_backward.py": (2, "square (no_backward.py:3): no backward is written for square"),
    "check wrong_name.py": (2, "square_backward (wrong_name.py:7): takes z, which square does not define"),
    "check wrong_return.py": (2, "square_backward (wrong_return.py:7): returns dz where the gradients are dx"),
    "check known_name.py": (2, "square_backward (known_name.py:7): y is already a name of square's forward"),
    "check wrong_option.py": (2, "square_backward (wrong_option.py:7): takes the option rate, which square does not have"),
    "check loop.py": (2, "square (loop.py:3), line 4: a loop is `for t in range(T):` or `for t in reversed(range(T)):`"),
    "check in_loop.py": (2, "square (in_loop.py:3), line 6: a line of a loop is `name[:, t] = expression`, or with +="),
    "check fills.py": (2, "square (fills.py:3), line 6: x is not made here: a loop fills arrays that a line before it has made"),
    "check fills_view.py": (2, "square (fills_view.py:3), line 6: y = x.T may share memory with another array, which the loop would change"),
    "check scales.py": (2, "square (scales.py:3), line 6: a part of an array is set, or added to: `h[:, t] += …`"),
    "check while.py": (2, "square (while.py:3), line 4: a line is `name = expression`: no loop, branch or subscript"),
    "check branch.py": (2, "square (branch.py:3), line 4: a rule has no IfExp: use np.where or a primitive"),
    "check builtin.py": (2, "square (builtin.py:3), line 4: max is not defined here (built-ins are not mathematics)"),
    "check expression.py": (2, "square (expression.py:3), line 5: return names only: give the expression a line of its own"),
    "check no_return.py": (2, "square (no_return.py:3): a rule ends by returning the names it computed"),
    "check default.py": (2, "square (default.py:3): arguments are names, and options are keyword-only (after *)"),
    "check tuple.py": (2, "square (tuple.py:3): a forward returns one value, this one returns a tuple"),
    "check signature.py": (2, "signature.py:2: signature '... ... -> ...': only one '...' per argument"),
    "check arrow.py": (2, "arrow.py:2: signature '...': write 'axes, axes -> axes'"),
    "check axis.py": (2, "axis.py:2: signature 'n -> m': the output's axis m is in no argument"),
    "check letter.py": (2, "letter.py:2: signature '1 -> n': '1' is not an axis name"),
    "check arguments.py": (2, "square (arguments.py:3): the signature ..., ... -> ... has 2 arguments and the function 1"),
    "check in_place.py": (2, "square (in_place.py:3), line 5: y += changes a value in place"),
    # explaining
    "explain sigma": (1, "sigma: there is no data set, no run and no rule of this name"),
    "show network.py": (1, "network.py: show takes no file of your own"),
    "explain swish.py:swish": (1, "swish.py:swish: there is no network and no rule"),
    "explain undefined.py": (1, "undefined.py: there is no network and no rule"),
    "explain rules.py": (1, "rules.py: there are 2 networks and rules: square, cube"),
    "explain nothing.py": (1, "nothing.py: there is no network and no rule"),
    "explain network.py --epochs 3": (1, "network.py is a file of your own, which has its own settings"),
    "explain runs/pets --epochs 3": (1, "runs/pets is a run, which has its own settings"),
    "explain nowhere.py:f": (1, "nowhere.py: there is no such file"),
    "explain --line dW9": (1, "no line makes 'dW9'"),
    "explain --jacobian z1": (1, "'z1' names no two values"),
    "explain --jacobian z1:z2": (1, "z1 does not depend on z2"),
    "explain digits --jacobian a1:z1": (1, "the Jacobian of a1 with respect to z1 has 67,108,864 entries, and 6,000,000 are the most"),
    "explain --jacobian z1:W1 --example 64": (1, "there is no row 64: the batch has 64"),
    "explain --jacobian z1:q9": (1, "the forward has no value 'q9'"),
    "explain --jacobian z9:W1": (1, "the forward has no value 'z9'"),
    "explain digits --jacobian q:W1": (1, "the Jacobian of q with respect to W1 has 5,242,880 entries, and 4,000 are the most for a local value"),
    "explain --jacobian z1:t": (1, "z1 does not depend on t"),
    "explain --example -1": (2, "Invalid value for '--example': -1 is not in the range x>=0."),
    "explain --rows 0": (2, "Invalid value for '--rows': 0 is not in the range x>=1."),
    "explain nowhere.toml": (1, "nowhere.toml: No such file or directory"),
    "explain broken.toml": (1, "broken.toml: not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    "lab network.py": (2, "Invalid value for '[FILE]': 'network.py' does not end in .html or .htm."),
    "explain --html network.py": (2, "Invalid value for '--html': 'network.py' does not end in .html or .htm."),
    "predict runs/pets pets.csv --out network.py": (2, "Invalid value for '--out': 'network.py' does not end in .csv or .json or .jsonl or .parquet."),
    "evaluate runs/pets --picture network.py": (2, "Invalid value for '--picture': 'network.py' does not end in .png."),
    "export runs/pets --onnx network.py": (2, "Invalid value for '--onnx': 'network.py' does not end in .onnx."),
    "export runs/pets --torch w.pt": (2, "Invalid value for '--torch': 'w.pt' does not end in .safetensors."),
    "lab 'a file'/x.html": (1, "a file/x.html: cannot be written: a file is no folder"),
    "explain --html 'a file'/x.html": (1, "a file/x.html: cannot be written: a file is no folder"),
    "explain network.py": (1, "network.py: network has no loss, at which its gradients begin"),
    # the other commands
    "show nowhere.csv": (1, "nowhere.csv: there is no such file"),
    "show --config broken.toml": (1, "broken.toml: not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    "write --config broken.toml": (1, "broken.toml: not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    "write --out theirs": (1, "theirs/train.py: is there already, and `handgrad write` did not write it"),
    "write --out 'a file'": (2, "Invalid value for '--out': Directory 'a file' is a file."),
    "export runs/all": (2, "Nothing to write: give --onnx FILE or --torch FILE."),
    "export pets.csv --onnx w.onnx": (2, "Invalid value for 'RUN': Directory 'pets.csv' is a file."),
    "export runs/unfinished --onnx w.onnx": (1, "runs/unfinished/run.json: No such file or directory"),
    "train --json=3": (2, "Option '--json' does not take a value."),
    "train --epochs": (2, "Option '--epochs' requires an argument."),
    "train --seed 1.5": (2, "Invalid value for '--seed': '1.5' is not a valid integer."),
    "train --tensorboard=1": (2, "Option '--tensorboard' does not take a value."),
    "--bogus": (2, "No such option '--bogus'."),
    "evaluate": (2, "Missing argument 'RUN'."),
    "predict": (2, "Missing argument 'RUN'."),
    "evaluate runs/pets runs/prices": (1, "runs/prices: there is no column 'kept'"),
    "show runs/unfinished --epochs 3": (1, "runs/unfinished is a run, which has its own settings"),
    "predict runs/pets fewer.npz": (1, "the data has rows of (2,), the network takes (3,)"),
    "explain runs/unfinished": (1, "runs/unfinished/run.json: No such file or directory"),
}  # fmt: skip
"""A command, its exit code, and the whole first line of its error."""


@pytest.fixture(scope="session")
def wrong(at: Command, runs: Path) -> Path:
    """Add files that are wrong in one way each, a run without test rows, and one whose data has changed since."""
    small = ["--target", "kept", "--hidden", "9", "--epochs", "1"]
    at("train", "pets.csv", *small, "--test", "0", "--out", "runs/all")
    shutil.copy(runs / "pets.csv", runs / "changed.csv")
    at("train", "changed.csv", *small, "--out", "runs/changed")
    shutil.copy(runs / "more.csv", runs / "changed.csv")
    write_wrong(runs)
    return runs


@pytest.mark.parametrize("arguments", WRONG)
def test_a_mistake_is_one_message(at: Command, wrong: Path, arguments: str) -> None:
    """Exit code 1 for what handgrad finds, 2 for what the command line or a check does; nothing on standard output."""
    code, problem = WRONG[arguments]
    done = at(*shlex.split(arguments), code=code)
    lines = done.stderr.replace(f"{wrong}/", "").splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("Error: "))
    assert lines[first] == f"Error: {problem}"
    assert done.stdout == ""
    assert len(lines) - first <= 3  # the problem, what was given, what to do
    assert all(line.startswith(("  given  ", "  fix    ")) for line in lines[first + 1 :])


# ------------------------------------------------------------------------------ whether any is missing above

BEHIND_IT = (
    "cli",
    "checkpoints",
    "configuration",
    "data",
    "errors",
    "explaining",
    "files",
    "layers",
    "runs",
    "specs",
    "tracking",
)
"""The modules that speak to whoever sits at the command line. Others say what the table above has from them."""

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "tests/cli/test_sparse_files.py shows it with sparse rows": ("the rows are sparse",),
    "tests/adopting shows it with a folder that is there": ("is there already",),
    "tests/checking/test_check_cli.py shows it with a file to mend": ("--fix asks before it writes",),
    "tests/checking/test_check_cli.py makes the check itself fail": ("handgrad failed",),
    "tests/cli/test_damage.py damages a run in each way": ("damaged, or not handgrad's: …", "…: it has no …", "and no file", "format …, and this handgrad reads", "no loss, and a run's", "classes, and the network has", "is only in", "in the file and … in the network"),
    "tests/data/test_series.py predicts for few rows, and gives a set characters": ("characters are of texts, and this source is none", "rows, and a window has",),
    "tests/interop/test_gpt2.py damages published files": ("tokens, and vocab.json has no token", "vocab.json has a token", "and GPT-2's is", "n_head is"),
    "tests/cli/test_columns.py changes the columns of a run": ("its columns do not make its features", "a column of a newer handgrad"),
    "tests/runs shows it with another process, or without a package": ("another process is training", "needs the package", "it is no folder", "its numbers contradict each other"),
    "tests/data/test_table_folder.py shows it with such folders": ("the files of one table end alike", "is text in some rows and numbers in others", "a temporary file cannot be written"),
    "tests/engines/test_cluster.py kills it": ("the training process was ended by",),
    "tests/data/test_reading.py reads a table of so many columns": ("columns to learn from, and a table may have",),
    "tests/data takes away the package or the network": ("needs the package", "no mirror gave the file"),
    "tests/layers/test_ranks.py gives every layer too few axes": ("has no places",),
    "tests/layers/test_convolution.py and test_attention.py make such layers": ("the padding is more than half of", "the window is not square", "heads of queries cannot share", "padding is an index of each place", "numbers, and a row of", "of equally many"),
    "tests/layers/test_graph.py ties weights to no array and to one of another shape": ("no layer before it has an array", "and … is needed", "has its layer's initialiser", "branches have nothing to be put side by side",),
    "tests/runs/test_hostile.py reads a run of 20,000 layers": ("a network of more than",),
    "tests/data/test_images.py shows it with such folders": ("there are no images", "pixels, and … has", "bytes each are needed", "would not be read", "the mode is"),
    "a reader gives sound ones, so only arrays of a Python program are so": ("x has dtype", "feature names for", "test_rows is", "class numbers must be", "class names must differ", "classes are numbered from 0", "targets must be float32 or float64", "regression has no classes", "split: …", "there are no rows", "the batch has no rows"),
    "the command line has no option for it, so only a Python program gives it": ("arms is", "rows is", "noise is", "this is no explanation", "ignored is a class number", "how many indices a row has", "has no features to normalise", "has no derivatives", "is not finite here"),
}  # fmt: skip
"""What stands in no row above, by why it does not."""


def messages() -> Iterator[str]:
    """Yield what the modules behind the command line raise, with … for each value."""
    for path in sorted(Path(handgrad.__file__).parent.rglob("*.py")):
        if path.relative_to(Path(handgrad.__file__).parent).parts[0].removesuffix(".py") not in BEHIND_IT:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "_problem":
                tuples = (each for each in ast.walk(node) if isinstance(each, ast.Tuple) and each.elts)
                yield from (_template(each.elts[0]) for each in tuples)
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            name = ast.unparse(node.exc.func)
            if name.endswith(("Error", "error")) and name not in vars(builtins):
                yield _template(node.exc.args[0])


def _template(message: ast.expr) -> str:
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)


def test_every_error_is_listed() -> None:
    """Each message of the modules behind the command line is in a row of the table, or it is said why it is not."""
    rows = [problem for _, problem in WRONG.values()]
    for name, flag, _ in SETTINGS:  # which is raised of a setting, and shown of the option that was given
        rows += [row.replace(flag, name, 1) for row in rows if row.startswith(flag)]
    raised = [message for message in messages() if re.search(r"[a-z]{2}", message)]
    elsewhere = {part for parts in ELSEWHERE.values() for part in parts}
    missing = [
        message for message in raised
        if not any(part in message for part in elsewhere)
        and not any(re.search(re.escape(message).replace("…", ".+"), row) for row in rows)
    ]  # fmt: skip
    assert missing == []
    assert [part for part in elsewhere if not any(part in message for message in raised)] == []


def test_no_mistake_leaves_a_folder_behind(at: Command, runs: Path) -> None:
    """A training that ends in an error makes no run folder, not even an empty one."""
    before = sorted(runs.rglob("*"))
    at("train", "pets.csv", "--target", "kept", "--optimiser", "SGD", "--learning-rate", "1e30", code=1)
    at("train", "pets.csv", "--target", "kept", "--out", "new/run", "--learning-rate", "-1", code=1)
    assert sorted(runs.rglob("*")) == before


def test_a_loss_that_is_not_finite_names_the_line_and_the_learning_rate(at: Command, shop: Path) -> None:
    """One message, without NumPy's warnings before it."""
    done = at("train", "moons", "--optimiser", "SGD", "--learning-rate", "1e30", code=1)
    head, problem, given, fix = done.stderr.splitlines()
    assert head == "moons: 700 training rows · network 2 → 256 → 2 · 1,282 parameters"
    assert problem.startswith("Error: step ")
    assert " line `" in problem
    assert given.startswith("  given  |")
    assert fix.startswith("  fix    likely cause: the learning rate: W1 has grown from ")
    assert fix.endswith(
        "instead of 1e+30, the largest tried that stays finite for 50 steps from the initial weights, or --clip-norm 1"
    )
    rate = fix.partition("; try --learning-rate ")[2].split()[0]
    at("train", "moons", "--optimiser", "SGD", "--learning-rate", rate, "--epochs", "3")


def test_what_a_training_advises_has_its_option() -> None:
    """Each phrase that is replaced is in the errors of a training, and no argument of Python's is left there."""
    from handgrad.training import learning_rates, nonfinite

    source = "".join(inspect.getsource(module) for module in (learning_rates, nonfinite))
    assert [phrase for phrase in REMEDIES if phrase not in source] == []
    advice = " ".join(re.findall(r'"([^"\n]*(?:try|train|put|or) [^"\n]*)"', inspect.getsource(nonfinite)))
    for phrase, option in REMEDIES.items():
        advice = advice.replace(phrase, option)
    assert re.findall(r"\w+=|Standardise\(\)", advice) == []


def test_options_may_come_in_any_order(at: Command, shop: Path) -> None:
    """--learning-rate before --optimiser is not forgotten."""
    for order in (
        ["--learning-rate", "-2", "--optimiser", "SGD"],
        ["--optimiser", "SGD", "--learning-rate", "-2"],
    ):
        done = at("train", *order, code=1)
        assert done.stderr.startswith("Error: --learning-rate: SGD: learning_rate is -2.0\n")


def test_a_mistake_in_a_configuration_names_file_line_and_setting(handgrad: Command, tmp_path: Path) -> None:
    """Before any data is read."""
    (tmp_path / "net.toml").write_text('[network]\nhidden = [3]\nactivation = "rellu"\n')
    done = handgrad("train", "no-such-data.csv", "--config", "net.toml", code=1)
    assert done.stderr == (
        "Error: net.toml, line 3: network.activation: 'rellu' is unknown\n  fix    did you mean 'relu'?\n"
    )


def test_what_the_command_line_gave_is_not_blamed_on_the_file(handgrad: Command, tmp_path: Path) -> None:
    """An option goes over the file, and so does its mistake."""
    (tmp_path / "net.toml").write_text('[network]\nactivation = "relu"\n')
    done = handgrad("train", "--config", "net.toml", "--activation", "rellu", code=1)
    assert done.stderr.startswith("Error: --activation: 'rellu' is unknown\n")


def test_the_remedy_names_options_too(at: Command, runs: Path) -> None:
    """Where the setting was given as one; settings that a file gave are named as in the file."""
    done = at("train", "--validation", "0", "--patience", "3", code=1)
    assert done.stderr == (
        "Error: --patience: there are no validation rows to watch\n  fix    set --validation to 0.1\n"
    )
    done = at("show", "runs/pets", "--batch-size", "3", code=1)
    assert done.stderr.splitlines()[1] == "  given  --batch-size"


LAYERS = '[network]\nlayers = [{{type = "Linear", inputs = {}, outputs = 4}}, {{type = "Linear", inputs = {}, outputs = {}}}]\n'
"""Two layers with their sizes open."""


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            (63, 4, 10),
            "layer 2, Linear(63, 4): axis I is 64 in x(n, 64)[1] but 63 in W(63, 4)[0]\n"
            "  given  h1(n, 64) comes from the data\n  fix    make the two sizes the same\n",
        ),
        (
            (64, 5, 10),
            "layer 3, Linear(5, 10): axis I is 4 in x(n, 4)[1] but 5 in W(5, 10)[0]\n"
            "  given  z1(n, 4) comes from layer 2, Linear(64, 4)\n  fix    make the two sizes the same\n",
        ),
        (
            (64, 4, 9),
            "network.layers: Linear(4, 9) gives 9 outputs, and digits with SoftmaxCrossEntropy() needs 10\n",
        ),
    ],
)
def test_layers_that_do_not_fit_are_named(
    handgrad: Command, tmp_path: Path, sizes: tuple[int, ...], message: str
) -> None:
    """Neither to the data, nor to each other, nor to the classes."""
    (tmp_path / "net.toml").write_text(LAYERS.format(*sizes))
    assert handgrad("train", "--config", "net.toml", code=1).stderr == f"Error: {message}"


def test_an_engine_that_is_asked_for_and_not_installed_is_an_error(handgrad: Command) -> None:
    """It is no training on another engine, which nobody might notice."""
    done = handgrad("train", "moons", "--engine", "jax", "--epochs", "1", code=1, missing=["jax"])
    assert "Error: the jax engine needs the package jax\n  fix    pip install 'handgrad[jax]'" in done.stderr


def test_explain_of_functions_that_are_no_network_names_the_commands_for_them(
    handgrad: Command, tmp_path: Path
) -> None:
    text = "def forward(x):\n    return 2 * x\n\n\ndef backward(dy, x):\n    return 2 * dy\n"
    (tmp_path / "net.py").write_text(text)
    done = handgrad("explain", "net.py", code=1)
    assert "net.py: there is no network and no rule" in done.stderr
    assert "handgrad adopt net.py makes a Network" in done.stderr


def test_a_rule_is_among_those_that_explain_suggests_and_show_hands_over(handgrad: Command) -> None:
    for name, near in (("sigma", "sigmoid"), ("digit", "digits")):
        assert handgrad("explain", name, code=1).stderr.endswith(f"  fix    did you mean '{near}'?\n")
    several = handgrad("explain", "self_attention", code=1).stderr
    assert "the nearest are causal_attention, attention, padded_attention" in several
    assert "handgrad explain softmax shows" in handgrad("show", "softmax", code=1).stderr
    assert "handgrad explain net.py:net, or" in handgrad("show", "net.py:net", code=1).stderr


def test_a_published_network_is_among_those_that_show_suggests(handgrad: Command) -> None:
    assert "did you mean 'gpt2'?" in handgrad("show", "gpt5", code=1).stderr
