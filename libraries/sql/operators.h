// The operators as free functions over the library of kernels, one file each. Private to this folder; sql.h says what they do.
#pragma once
#include "libraries/sql/library.h"
#include "libraries/sql/sql.h"
