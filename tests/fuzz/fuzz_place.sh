# seconds: 600
. "$HERE/fuzz"
fuzz place
