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

// Rows of the register of sources. A scale factor that is no positive number is wrong usage.
extern const data::Scheme scheme;
// `ssb-joins:SF`: the same tables without declared foreign keys: programs join them by keys.
extern const data::Scheme joins_scheme;

data::Schema schema();

// Writes the five tables as DIRECTORY/NAME.tbl, as the benchmark's own generator has them, and
// schema.json, creating the directory. Progress on stderr when it takes longer than a second.
Result<void> write_tables(double scale, const std::string& directory, unsigned threads = 0,
                          bool progress = true);

}  // namespace rndn::ssb
