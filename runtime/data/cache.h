// A cache of columns on disk: what was parsed or generated once is read back as it lies in memory.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "runtime/data/source.h"

namespace rndn::data {

// $RNDN_CACHE_DIR, else $XDG_CACHE_HOME/rndn, else $HOME/.cache/rndn; empty when none of them is set.
std::string default_cache_directory();

// An error (fault world) where nothing can be kept in that folder, which is made if need be.
Result<void> check_cache(const std::string& directory);

// A loader that looks into `directory` first and leaves there what it had to load through `inner`. A file that cannot be read, is
// damaged, or belongs to other data counts as not there; one that cannot be written is left out. Safe to share between processes.
// `place`: the file or folder that `inner` reads.
std::unique_ptr<TableLoader> cached(std::unique_ptr<TableLoader> inner, std::string directory, std::string place = "");

// Where the directory keeps what is called so and has that fingerprint; the name is for people.
std::string cache_entry(const std::string& directory, const std::string& name, const std::string& fingerprint,
                        std::string_view extension);

// One column in a file, which nobody but its owner can read. `fingerprint` names the data; reading gives nothing unless it agrees.
bool write_column(const std::string& path, const std::string& fingerprint, const Column& column);
std::optional<Column> read_column(const std::string& path, const std::string& fingerprint);
// A form that bytes of a column have been put in, in a file of its own; `form` names it.
class FormFile {
 public:
  // None: no cache keeps forms of these bytes.
  static std::optional<FormFile> of(const Bytes& bytes, const std::string& form);
  // The bytes in that form, as they lie in the file; null: they cannot be put in it. None: there is no such file, or a damaged one.
  std::optional<std::shared_ptr<Bytes>> read() const;
  // Whether what is read is of these very bytes; else it may be of others that came from the same place.
  bool is_of_these() const { return is_of_these_; }
  bool write(const Bytes* made) const;

 private:
  FormFile(std::string path, std::string fingerprint, bool is_of_these)
      : path_(std::move(path)), fingerprint_(std::move(fingerprint)), is_of_these_(is_of_these) {}
  std::string path_, fingerprint_;
  bool is_of_these_;
};

// The same for some texts.
bool write_texts(const std::string& path, const std::string& fingerprint, const std::vector<std::string>& texts);
std::optional<std::vector<std::string>> read_texts(const std::string& path, const std::string& fingerprint);

}  // namespace rndn::data
