/*{banner*/
/* The trainer as sbpcc writes it: the command line is part of the library. */
/*}*/
#include "model.h"

int main(int argc, char **argv)
{
	return sbp_main(argc, argv);
}
