# Mathematical functions, as scalar code and as vector code.
gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -I"$ROOT/kernels/cpu" -I"$ROOT/runtime" -o scalar "$HERE/math.c" -lm && ./scalar 2>/dev/null | sed 's/^\(ok\|not ok\) /\1 scalar-/'
gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O3 -fno-math-errno -fno-trapping-math -I"$ROOT/kernels/cpu" -I"$ROOT/runtime" -o vector "$HERE/math.c" -lm && ./vector 2>/dev/null | sed 's/^\(ok\|not ok\) /\1 vector-/'
