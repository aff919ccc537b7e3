// A folder of files that is removed at the end.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "libraries/base/system/files.h"

namespace rndn::data {

class TestFolder {
 public:
  TestFolder() {
    path_ = testing::TempDir() + "rndn_data_XXXXXX";
    if (!mkdtemp(path_.data())) ADD_FAILURE() << "cannot make a folder like " << path_;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void write(const std::string& name, std::string_view text) {
    Result<void> written = write_file(path_ + "/" + name, text);
    EXPECT_TRUE(written.ok());
  }
  const std::string& path() const { return path_; }
  // `message` without the folder's own name.
  std::string local(std::string message) const {
    for (size_t at; (at = message.find(path_ + "/")) != message.npos;) message.erase(at, path_.size() + 1);
    return message;
  }

 private:
  std::string path_;
};

}  // namespace rndn::data
