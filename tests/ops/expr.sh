# Scalar expressions printed as C, compiled as C and as C++, compute what the evaluator computes.
set -eu
"$BUILD/test-ops-expr" > e.c
cp e.c e.cc
for how in "gcc -std=c11 -x c e.c" "g++ -std=c++17 -x c++ e.cc"; do
	cc=${how%% *}
	if ! command -v "$cc" > /dev/null; then
		echo "skip expressions-$cc: not installed"
		continue
	fi
	# No warnings about values: the program holds many expressions that are constant.
	if $how -O1 -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-parameter -Wno-type-limits -o e -lm 2> err && ./e > out; then
		echo "ok expressions-$cc"
	else
		echo "not ok expressions-$cc: the printed program disagrees with the evaluator, or does not compile"
		head -n 20 err out 2> /dev/null | sed 's/^/  /'
	fi
done
