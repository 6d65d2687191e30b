/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes leat/ops.pyi, the type stubs of leat/ops.py, from the table of ops. Runs at build time.
 */
#include <stdio.h>
#include <string.h>

#include <leat/op.h>

static const char head[] = "# Written from the table of ops by python/src/ops_stub.c.\n"
                           "from collections.abc import Iterator, Sequence\n"
                           "from typing import Literal\n"
                           "\n"
                           "class Op:\n"
                           "    name: str\n"
                           "    params: dict[str, object]\n"
                           "    @property\n"
                           "    def text(self) -> str: ...\n"
                           "\n"
                           "def text(ops: str | Op | Sequence[str | Op]) -> str: ...\n"
                           "def names() -> Iterator[str]: ...\n";

static void print_choices(const char *choices)
{
    printf("Literal[\"");
    for (const char *c = choices; *c != '\0'; c++) {
        if (*c == '|') printf("\", \"");
        else putchar(*c);
    }
    printf("\"] | object"); /* or a torch or NumPy dtype */
}

static void print_type(const leat_op_param *p)
{
    if (strcmp(p->kind, "flag") == 0) printf("bool");
    else if (strcmp(p->kind, "int") == 0) printf("int");
    else if (strcmp(p->kind, "float") == 0) printf("float");
    else if (strcmp(p->kind, "floats") == 0) printf("float | Sequence[float]");
    else if (strcmp(p->kind, "ints") == 0) printf("int | Sequence[int]");
    else if (strcmp(p->kind, "choice") == 0) print_choices(p->choices);
    else if (strcmp(p->kind, "ops") == 0) printf("str | Op | Sequence[str | Op]");
    else printf("str");
}

static void print_op(uint32_t i, const leat_op_info *op)
{
    leat_op_param p;

    printf("\nclass %s(Op):\n    \"\"\"%s\"\"\"\n    def __init__(\n        self,\n", op->name, op->help);
    for (uint32_t k = 0; k < op->params && leat_op_param_at(i, k, &p) == 0; k++) {
        printf("        %s: ", p.name);
        print_type(&p);
        printf("%s,  # %s\n", p.def != NULL ? " = ..." : "", p.help);
    }
    printf("    ) -> None: ...\n");
}

int main(void)
{
    leat_op_info op;

    fputs(head, stdout);
    for (uint32_t i = 0; leat_op_info_at(i, &op) == 0; i++) print_op(i, &op);
    return ferror(stdout) != 0;
}
