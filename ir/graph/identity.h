/* Corresponding values of two graphs that the same passes made from one model (identity.c).  Passes before train that
 * make values declare the identity of each; without Model.identity these calls do nothing. */
#ifndef SBPCC_IDENTITY_H
#define SBPCC_IDENTITY_H

#include "graph.h"

void identity_start(Model *);                   /* for the values that it has and those that will be made */
void identity_close(Model *);                   /* values that are made from now on have none */

/* Until identity_leave, new values belong to this rewrite of a node, or to the values that are made from this value.
 * identity_leave takes the number that these functions return. */
uint64_t identity_enter(const Node *, const char *what);
uint64_t identity_enter_value(const Value *, const char *what, int kind);
void     identity_leave(const Graph *, uint64_t);

void identity_node(const Node *);               /* its results and constants, as far as they have none */
void identity_copy(Value *made, const Value *of);                         /* of: in the body that is copied */
/* the same elements, or cast; nothing if it has one */
void identity_from(Value *made, const Value *like, const char *what);

const Value *identity_find(const Model *there, const Value *);            /* the same value there; NULL */
const Value *identity_like(const Value *);      /* the value that identity_from made it from; NULL */

/* What became of control flow: which branch of an If, iterations of a Loop, position in a sequence. */
typedef struct Control { const Node *n; int64_t taken; uint64_t rewrite; struct Control *next; } Control;
void identity_control(const Node *, int64_t taken);
const Control *identity_controls(const Model *);                          /* all of a model, last first */
const Control *identity_find_control(const Model *there, const Control *);

#endif
