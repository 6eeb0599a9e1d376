/* The steps of recurrent cells; the loops are in cells.h. */
#include "cells_list.h"

#include <math.h>

#define T float
#define NAME(f) f##_f32
#define EXP expf
#define TANH tanhf
#include "cells.h"

#define T double
#define NAME(f) f##_f64
#define EXP exp
#define TANH tanh
#include "cells.h"

#define RUN_CELLS(name) turns(c, k->batch, 1 << 20, TURNS_REAL(name), &a)
#include "cells_calls.h"
