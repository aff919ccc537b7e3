// Finds out what a delimited file holds.
//
// In: a mapped file. Out: the schema of its one table, which the reader then follows.
// The first rows (at most 1,000) decide on delimiter, quotes, number of columns and header, and give
// a first type per column. Then all rows are checked in parallel. A column starts with the set of
// types that its sample fits, and every field takes those away that it does not fit: what is left,
// in the order of the table below, is the type, and nothing left is text. The result does not depend
// on how the file was cut into blocks. Where the type is not the sample's, a note names the field.
//
// Cost: one pass over the file; a field is parsed once, as the column's likeliest type, since a row of the
// table says which types take all that it takes. Columns of text are only stepped over.
//
// Timestamps with more digits than a dt has are microseconds in i64, and mean a time (Meaning); where
// one of a column has Z or an offset, the column's are in UTC, those without being taken as such.
//
// Left out: words for missing values (NA, NULL), decimal commas, separators of thousands, names of
// zones and months, years of two digits, preambles: such columns are text.
#include "runtime/data/guess.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <tuple>

#include "libraries/base/system/parallel.h"
#include "libraries/base/report/progress.h"
#include "runtime/data/parse_value.h"
#include "runtime/data/read_columns.h"
#include "runtime/data/rows.h"

namespace rndn::data {

using hir::BasicType;

TextFormat format_of(const TableSchema& table) {
  return {.delimiter = table.delimiter,
          .quoted = table.quoted,
          .header = table.header,
          .one_column = table.columns.size() == 1};
}

namespace {

// --- Types ---

using Set = uint32_t;  // of candidates

struct Candidate {
  BasicType type;
  DateFormat format;
  Set takes;  // the candidates that take every field that this one takes, itself included
};

constexpr size_t format_count = date_separators.size() * std::size(date_orders);
constexpr size_t first_date = 7, first_dt = first_date + format_count,
                 micros = first_dt + format_count,  // of an ISO date
                 candidate_count = micros + 1;

// In the order in which they are preferred. Integers are i64, not i32: sums of i32 wrap.
constexpr std::array<Candidate, candidate_count> make_candidates() {
  std::array<Candidate, candidate_count> all{};
  all[0] = {BasicType::i64, {}, 0b11};
  all[1] = {BasicType::f64, {}, 0b10};
  all[2] = {BasicType::boolean, {}, 0b100};
  all[3] = {BasicType::month, {}, 0b1000};
  all[4] = {BasicType::minute, {}, 0b1110000};
  all[5] = {BasicType::second, {}, 0b1100000};
  all[6] = {BasicType::time, {}, 0b1000000};
  for (size_t f = 0; f < format_count; ++f) {
    const DateFormat format = {static_cast<DateFormat::Order>(f % std::size(date_orders)),
                               date_separators[f / std::size(date_orders)]};
    const Set dt = Set{1} << (first_dt + f);
    all[first_date + f] = {BasicType::date, format, dt | Set{1} << (first_date + f)};
    all[first_dt + f] = {BasicType::dt, format, dt};
    if (format == DateFormat())
      for (Candidate* iso : {&all[first_date + f], &all[first_dt + f]}) iso->takes |= Set{1} << micros;
  }
  all[micros] = {BasicType::i64, {}, Set{1} << micros};
  return all;
}
constexpr std::array<Candidate, candidate_count> candidates = make_candidates();
constexpr Set every = (Set{1} << candidate_count) - 1, integer = 0b1, real = 0b10,
              with_time = every & ~((Set{1} << first_dt) - 1);

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// From the first character that is no blank or sign.
std::string_view behind_sign(std::string_view field) {
  return field.substr(std::min(field.find_first_not_of(" \t+-"), field.size()));
}

// nan, inf, infinity: numbers beside numbers, but words by themselves.
bool is_number_word(std::string_view field) {
  std::string word(behind_sign(field).substr(0, 10));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  word.resize(word.find_last_not_of(" \t") + 1);
  return word == "nan" || word == "inf" || word == "infinity";
}

bool is_micros(const Candidate& candidate) { return &candidate == &candidates[micros]; }

bool fits(const Candidate& candidate, std::string_view field) {
  alignas(16) std::byte value[16];
  if (is_micros(candidate)) return parse_timestamp(field, value) == ParseStatus::ok;
  const ParseStatus status = parse_value(candidate.type, field, value, candidate.format);
  if (candidate.type != BasicType::i64 && candidate.type != BasicType::f64)
    return status == ParseStatus::ok;
  const bool real = candidate.type == BasicType::f64;
  if (status != ParseStatus::ok && !(real && status == ParseStatus::out_of_range)) return false;
  const std::string_view number = behind_sign(field);
  if (number.size() > 1 && number[0] == '0' && is_digit(number[1])) return false;  // 007 is a code
  return !real || number[0] == '.' || is_digit(number[0]) || is_number_word(field);
}

// What the fields of a column were.
struct Facts {
  Set set = every;
  bool any = false;          // not blank
  bool number = false;       // one that is no word
  bool zone = false;         // of a time
  size_t broken = SIZE_MAX;  // offset of the first that is not of the guessed type
  size_t wide = SIZE_MAX;    // and of the first integer beyond i64

  void see(std::string_view field, size_t offset, Set guessed) {
    if (is_blank(field)) return;
    any = true;
    if (!set) return;
    Set fit = 0;
    for (Set left = set; left; left &= left - 1) {
      const int i = std::countr_zero(left);
      if (!(fit >> i & 1) && fits(candidates[i], field)) fit |= candidates[i].takes;
    }
    fit &= set;
    if (fit & real) {
      if (!number) {
        const char first = behind_sign(field)[0];
        number = first == '.' || is_digit(first);
      }
      constexpr size_t digits_of_i64 = 19;
      if (field.size() >= digits_of_i64 && offset < wide) note_wide(field, offset);
    }
    if (!zone && fit & with_time) zone = has_zone(field);
    if (set & guessed & ~fit) broken = std::min(broken, offset);
    set = fit;
  }
  void join(const Facts& other) {
    set &= other.set;
    any |= other.any;
    number |= other.number;
    zone |= other.zone;
    broken = std::min(broken, other.broken);
    wide = std::min(wide, other.wide);
  }

 private:
  void note_wide(std::string_view field, size_t offset) {
    int64_t value;
    if (parse_value(BasicType::i64, field, reinterpret_cast<std::byte*>(&value)) ==
        ParseStatus::out_of_range)
      wide = offset;
  }
};

constexpr int as_text = -1, day_or_month = -2;  // day_or_month: as text, too, of dates in two readings

// The position of the column's type among the candidates, as_text or day_or_month.
int choose(const Facts& facts) {
  Set set = facts.any ? facts.set : 0;
  if (!facts.number) set &= ~real;
  if (!set) return as_text;
  const int first = std::countr_zero(set);
  const Candidate& chosen = candidates[first];
  if (chosen.format.order == DateFormat::dmy && set >> (first + 1) & 1)
    return day_or_month;  // mdy comes next
  return first;
}

std::string_view type_name(int choice) {
  if (choice == static_cast<int>(micros)) return "timestamp";
  return hir::basic_type_name(choice < 0 ? BasicType::sym : candidates[choice].type);
}

// --- The first rows ---

struct Cell {
  std::string text;
  size_t offset;
};

struct Sample {
  std::vector<std::vector<Cell>> rows;  // none is empty
  bool quotes = false;                  // some stand there
  bool broken = false;                  // and do not match
};

Sample take_sample(const TextFile& file, const TextFormat& format) {
  constexpr size_t most_rows = 1000, most_bytes = 1 << 20;
  Sample sample;
  FieldReader reader(file.text(), 0, format);
  reader.skip_empty_lines();
  while (!reader.at_end() && !sample.broken && sample.rows.size() < most_rows &&
         (reader.offset() < most_bytes || sample.rows.size() < 2)) {
    std::vector<Cell>& row = sample.rows.emplace_back();
    for (bool more = true; more && !sample.broken;) {
      const FieldReader::Field field = reader.next();
      sample.broken = field.broken_quote;
      sample.quotes |= format.quoted && file.text().substr(field.offset).starts_with('"');
      more = field.after == FieldReader::After::delimiter;
      row.push_back({field.broken_quote ? std::string() : std::string(field.text), field.offset});
      if (more && reader.at_end()) row.push_back({"", file.text().size()}), more = false;
    }
    reader.skip_empty_lines();
  }
  return sample;
}

// The share of rows with as many fields as the first; a last delimiter may come or go.
double agreement(const Sample& sample) {
  const size_t first = sample.rows[0].size();
  const bool ended = first > 1 && sample.rows[0].back().text.empty();
  size_t agree = 0;
  for (const std::vector<Cell>& row : sample.rows)
    agree += row.size() == first || (row.size() == first + 1 && row.back().text.empty()) ||
             (ended && row.size() + 1 == first);
  return static_cast<double>(agree) / static_cast<double>(sample.rows.size());
}

struct Dialect {
  TextFormat format;
  Sample sample;
};

// The delimiter that cuts the rows into the same number of fields, more than one, as often as none
// other does; of those, the one that makes most of them. The extension's own comes first.
Dialect find_dialect(const TextFile& file) {
  TableSchema by_name;
  by_name.set_file(file.path());
  std::string delimiters = ",;\t|";
  delimiters.insert(0, 1, by_name.delimiter);
  for (bool quoted : {true, false}) {
    Dialect best;
    double best_agreement = 0;
    size_t most = 1;
    for (char delimiter : delimiters) {
      TextFormat format = {
          .delimiter = delimiter, .quoted = quoted, .line_end = file.format().line_end};
      Sample sample = take_sample(file, format);
      const size_t fields = sample.rows[0].size();
      const double agree = agreement(sample);
      const bool better =
          std::tuple(fields > 1, agree, fields) > std::tuple(most > 1, best_agreement, most);
      if (!better && !best.sample.rows.empty()) continue;
      best = {format, std::move(sample)};
      best_agreement = agree, most = fields;
    }
    best.format.quoted = quoted && (by_name.quoted || best.sample.quotes);
    if (by_name.quoted || !best.sample.broken) return best;
  }
  return {};  // not reached: without quotes none is broken
}

// Columns of the table: a delimiter that ends all rows makes none, nor one that ends the first alone.
size_t count_columns(const Sample& sample) {
  const auto& rows = sample.rows;
  const size_t first = rows[0].size();
  const auto others = [&](auto&& holds) {
    return std::all_of(rows.begin() + 1, rows.end(), holds);
  };
  const auto ended = [&](const std::vector<Cell>& row) {
    return row.size() == first && row.back().text.empty();
  };
  if (first == 1 || !rows[0].back().text.empty()) return first;
  if (others(ended)) return first - 1;
  if (rows.size() > 1 &&
      others([&](const std::vector<Cell>& row) { return row.size() + 1 == first; }))
    return first - 1;
  return first;
}

// --- The header ---

bool is_value(std::string_view cell) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& c) { return fits(c, cell); }) &&
         !is_number_word(cell);
}

bool is_year(std::string_view cell) {
  return cell.size() == 4 && std::all_of(cell.begin(), cell.end(), is_digit) &&
         (cell[0] == '1' || cell[0] == '2');
}

// Words that stand for a value that is missing say nothing of a header.
bool is_missing_word(std::string_view cell) {
  constexpr std::string_view words[] = {"NA",  "N/A", "n/a", "NULL", "null", "None",
                                        "NaN", "nan", "\\N", "-",    "?",    "."};
  return std::find(std::begin(words), std::end(words), cell) != std::end(words);
}

// Whether the first row has names. It does when one of its fields is none of its column's type, or
// when all of them can be names and, besides, all columns are text, a field is empty where the rows
// below have none empty (pandas writes its row labels so; in a column of text only the first), or years
// stand over what is no years. Names are fields that are no values, and numbers that are all years, or that count 0, 1, 2 behind an
// empty first name (pandas again).
bool has_header(const Sample& sample, size_t columns, std::span<const Facts> below) {
  const auto cell = [&](size_t row, size_t c) -> std::string_view {
    const std::vector<Cell>& cells = sample.rows[row];
    return c < cells.size() ? std::string_view(cells[c].text) : std::string_view();
  };
  const auto below_all = [&](size_t c, auto&& holds) {
    for (size_t row = 1; row < sample.rows.size(); ++row)
      if (!holds(cell(row, c))) return false;
    return true;
  };
  bool all_text = true, names = true, empty = false, years = false, over_others = false,
       counts = is_blank(cell(0, 0));
  size_t values = 0, year_values = 0, counted = 0;
  for (size_t c = 0; c < columns; ++c) {
    const std::string_view name = cell(0, c);
    const int type = choose(below[c]);
    all_text &= type < 0;
    if (is_blank(name)) {
      empty = true;
      names &= (c == 0 || type >= 0) &&
               below_all(c, [](std::string_view field) { return !is_blank(field); });
      continue;
    }
    if (type >= 0 && !fits(candidates[type], name) && !is_missing_word(name)) return true;
    if (!is_value(name)) continue;
    ++values;
    counted += name == std::to_string(counted);
    year_values += is_year(name);
    over_others |= !below_all(c, is_year);
  }
  counts &= counted == values;
  years = values > 0 && year_values == values;
  names &= values == 0 || years || counts;
  if (sample.rows.size() == 1) return names && !empty && !values;
  return names && (all_text || empty || (years && over_others));
}

// --- All rows ---

class Checker {
 public:
  Checker(const std::string& path, const SourceOptions& options) : path_(path), options_(options) {}

  Result<Guess> run() {
    ASSIGN_OR_RETURN(guess_.file, TextFile::map(path_));
    const TextFile& file = *guess_.file;
    if (file.text().empty())
      return input_error(
          "cannot read `{}` as a table: {}", path_,
          file.has_empty_lines_only() ? "it has empty lines only" : "the file is empty");
    if (file.text().substr(0, 1 << 20).find('\0') != std::string_view::npos)
      return input_error("cannot read `{}` as a table: it has bytes of value 0, which text has not",
                         path_);
    dialect_ = find_dialect(file);
    guess_.table.delimiter = dialect_.format.delimiter;
    guess_.table.quoted = dialect_.format.quoted;
    columns_ = count_columns(dialect_.sample);
    for (;;) {
      look_at_sample();
      Result<bool> grown = look_at_all();
      if (!grown) return grown.error();
      if (!*grown) break;
      ++columns_;  // what the sample took for the end of the row is a column
    }
    RETURN_IF_ERROR(decide());
    return std::move(guess_);
  }

 private:
  void look_at_sample() {
    const Sample& sample = dialect_.sample;
    facts_.assign(columns_, {});
    const auto see = [&](const std::vector<Cell>& row) {
      for (size_t c = 0; c < columns_ && c < row.size(); ++c)
        facts_[c].see(row[c].text, row[c].offset, 0);
    };
    for (size_t row = 1; row < sample.rows.size(); ++row) see(sample.rows[row]);
    guess_.table.header = has_header(sample, columns_, facts_);
    if (!guess_.table.header) see(sample.rows[0]);
    guessed_.clear();
    for (const Facts& facts : facts_) guessed_.push_back(choose(facts));
  }

  // Whether there is a field behind the last column where the sample has only empty ones.
  Result<bool> look_at_all() {
    guess_.table.columns.resize(columns_);
    guess_.file->cut(format_of(guess_.table), options_.threads);
    const TextFile& file = *guess_.file;
    const bool may_grow = std::any_of(
        dialect_.sample.rows.begin(), dialect_.sample.rows.end(),
        [&](const auto& row) { return row.size() == columns_ + 1 && row.back().text.empty(); });
    ThreadPool pool(options_.threads);
    std::vector<std::vector<Facts>> facts(pool.threads());  // by thread: all joins commute
    std::atomic<bool> grown{false};
    FirstFailure failure;
    Progress line("looking at " + path_, file.text().size(), options_.progress);
    const auto body = [&](size_t number, unsigned thread) {
      std::vector<Facts>& own = facts[thread];
      if (own.empty()) own = facts_;
      failure.meet(look_at_block(file.blocks()[number], own, may_grow ? &grown : nullptr));
      file.release(file.blocks()[number].begin, file.blocks()[number].end);
      line.advance(file.blocks()[number].end - file.blocks()[number].begin);
    };
    pool.run(file.blocks().size(), body);
    RETURN_IF_ERROR(failure.result(file));
    if (grown) return true;
    for (const std::vector<Facts>& own : facts)
      for (size_t c = 0; c < own.size(); ++c) facts_[c].join(own[c]);
    return false;
  }

  std::optional<Failure> look_at_block(const TextFile::Block& block, std::vector<Facts>& facts,
                                       std::atomic<bool>* grown) const {
    FieldReader reader(guess_.file->text(), block.begin, guess_.file->format());
    int64_t row = block.first_row;
    if (row < 0) {  // names
      reader.skip_empty_lines();
      while (reader.next().after != FieldReader::After::row) {
      }
      ++row;
    }
    const auto see = [&](size_t c, const FieldReader::Field& field) -> std::optional<Failure> {
      const int guessed = guessed_[c];
      facts[c].see(field.text, field.offset, guessed < 0 ? 0 : Set{1} << guessed);
      return std::nullopt;
    };
    const auto behind = [&](size_t start, const FieldReader::Field&) -> std::optional<Failure> {
      if (!grown)
        return Failure{start, fmt::format("expected {} columns, found {}", columns_, columns_ + 1)};
      *grown = true;
      return std::nullopt;
    };
    for (; row < block.first_row + block.rows; ++row)
      if (std::optional<Failure> failure = read_row(reader, columns_, see, behind)) return failure;
    return std::nullopt;
  }

  Result<void> decide() {
    TableSchema& table = guess_.table;
    const TextFile& file = *guess_.file;
    std::vector<std::string> names(columns_);
    if (table.header) {
      ASSIGN_OR_RETURN(names, read_header(file, columns_));
    } else {
      names = column_names(std::move(names));
    }
    for (size_t c = 0; c < columns_; ++c) {
      ColumnSchema& column = table.columns[c];
      column.name = std::move(names[c]);
      const Facts& facts = facts_[c];
      const int choice = choose(facts);
      column.type = choice < 0 ? BasicType::sym : candidates[choice].type;
      if (choice >= 0) column.format = candidates[choice].format;
      if (choice == static_cast<int>(micros)) column.meaning = Meaning::timestamp;
      if (choice >= static_cast<int>(first_dt) && facts.zone) column.meaning = Meaning::timestamp_utc;
      const bool real_type = column.type == BasicType::f64;
      if (real_type && facts.wide != SIZE_MAX)
        note("{}: {} is beyond an i64: column `{}` is read as f64, of 53 bits", facts.wide,
             column.name);
      else if (facts.broken != SIZE_MAX && guessed_[c] >= 0 && choice != guessed_[c])
        note(fmt::format("{{}}: {{}} is no {} as in the first rows: column `{{}}` is read as {}",
                         type_name(guessed_[c]), choice < 0 ? "text" : type_name(choice)),
             facts.broken, column.name);
      if (choice == day_or_month)
        guess_.notes.push_back(
            fmt::format("{}: the dates of column `{}` may have the day or the month first: it is "
                        "read as text (a schema.json with "
                        "its `format` decides)",
                        path_, column.name));
    }
    constexpr size_t most_notes = 8;
    if (guess_.notes.size() > most_notes) {
      const size_t more = guess_.notes.size() - most_notes;
      guess_.notes.resize(most_notes);
      guess_.notes.push_back(
          fmt::format("{}: and {} more columns of which something is to be said", path_, more));
    }
    return {};
  }

  void note(std::string_view format, size_t offset, const std::string& column) {
    FieldReader reader(guess_.file->text(), offset, guess_.file->format());
    const std::string place = guess_.file->describe(offset), field = quote(reader.next().text);
    guess_.notes.push_back(fmt::format(fmt::runtime(format), place, field, column));
  }

  const std::string path_;
  const SourceOptions& options_;
  Guess guess_;
  Dialect dialect_;
  size_t columns_ = 0;
  std::vector<Facts> facts_;
  std::vector<int> guessed_;  // by column: from the sample
};

}  // namespace

Result<Guess> guess_table(const std::string& path, const SourceOptions& options) {
  return Checker(path, options).run();
}

}  // namespace rndn::data
