// `--data ssb:SF`: the Star Schema Benchmark (O'Neil, O'Neil, Chen, Revilak: "The Star Schema
// Benchmark and Augmented Fact Table Indexing", TPCTC 2009), generated in memory. Columns are
// generated on first use.
//
// One table of facts, lineorder, and four dimensions: customer, supplier, part, date. Money is
// whole cents. The tables are those of the benchmark's own generator, each made alone: quantities,
// discounts, dates and numbers of lines are TPC-H's at the same scale.
#pragma once
#include "runtime/data/sources.h"

namespace rndn::ssb {

// The row of the register of sources. A scale factor that is no positive number is wrong usage.
extern const data::Scheme scheme;

data::Schema schema();

}  // namespace rndn::ssb
