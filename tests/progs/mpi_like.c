/*
 * A program that needs a library named libmpi: the Makefile builds an empty
 * one beside it.
 */
extern int mpi_like_symbol;

int main(void)
{
    return mpi_like_symbol;
}
