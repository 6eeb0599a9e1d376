. "$HERE/fuzz"
fuzz place
