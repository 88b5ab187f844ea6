int mpi_like_symbol;
