# Two processes, each in a network of its own, train together; the link between them goes down, and both end: how, and when.
#
# unshare --map-root-user --net --uts --mount bash benchmarks/lost_link.sh FOLDER, without privileges where the system lets users
# make name spaces.
set -eu
cd "$1"
printf '127.0.0.1 localhost\n10.9.0.1 node0\n10.9.0.2 node1\n' > hosts
mount --bind hosts /etc/hosts # each finds the other by its name
hostname node0
unshare --net --uts sleep 300 &
other=$!
trap 'kill $other' EXIT
sleep 1
there() { nsenter --target "$other" --net --uts "$@"; }
ip link add link0 type veth peer name link1
ip link set link1 netns "$other"
ip addr add 10.9.0.1/24 dev link0
ip link set link0 up
ip link set lo up
there sh -c 'hostname node1; ip addr add 10.9.0.2/24 dev link1; ip link set link1 up; ip link set lo up'

command="handgrad train digits --hidden 32 --epochs 100000 --checkpoint-minutes 0.02 --out run
  --engine jax --cluster --coordinator 10.9.0.1:55527 --processes 2 --process"
$command 0 & first=$!
there $command 1 & second=$!
until [ -e run/checkpoint.safetensors ]; do sleep 0.1; done
sleep 2
ip link set link0 down
SECONDS=0
for process in $first $second; do
  code=0
  wait $process || code=$?
  echo "a process ended with code $code, $SECONDS s after the link"
done
