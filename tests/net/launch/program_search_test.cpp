#include "weft/net/launch/program_search.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::net::launch {
namespace {

namespace fs = std::filesystem;

class ProgramSearch : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/weft_program_search_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    previous_ = fs::current_path();
    fs::current_path(folder_);
    fs::create_directory(folder_ / "a");
    fs::create_directory(folder_ / "b");
  }
  void TearDown() override {
    fs::current_path(previous_);
    fs::remove_all(folder_);
  }

  void make(const fs::path& name, mode_t mode) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n";
    ASSERT_EQ(::chmod((folder_ / name).c_str(), mode), 0);
  }
  [[nodiscard]] std::string path() const { return (folder_ / "a").string() + ":" + (folder_ / "b").string(); }

  static std::string refusal(std::string_view program, std::string_view search_path) {
    const auto found = find_program(program, search_path);
    if (found) return "found " + *found;
    EXPECT_EQ(found.code(), Errc::invalid_argument);
    return found.error().what();
  }

  fs::path folder_;
  fs::path previous_;
};

TEST_F(ProgramSearch, ANameWithASlashIsTakenAsItIs) {
  make("prog", 0755);
  const auto found = find_program("./prog", "");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, "./prog");
}

TEST_F(ProgramSearch, TheFirstExecutableInThePathWins) {
  make("a/prog", 0644);  // not executable: passed over, as execvp does
  make("b/prog", 0755);
  const auto found = find_program("prog", path());
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (folder_ / "b/prog").string());
}

TEST_F(ProgramSearch, AnEmptyPartOfThePathIsTheCurrentDirectory) {
  make("prog", 0755);
  for (const std::string& search :
       {path() + ":", ":" + path(), (folder_ / "a").string() + "::/nosuch", std::string()}) {
    const auto found = find_program("prog", search);
    ASSERT_TRUE(found) << search;
    EXPECT_EQ(*found, "./prog");
  }
}

TEST_F(ProgramSearch, WhatCannotBeStartedIsRefusedWithItsReason) {
  make("plain", 0644);
  make("a/plain", 0644);
  EXPECT_EQ(refusal("./nosuch", path()), "program './nosuch': does not exist");
  EXPECT_EQ(refusal("./a", path()), "program './a': is a directory");
  EXPECT_EQ(refusal("./plain", path()), "program './plain': is not executable (chmod +x would make it so)");
  EXPECT_EQ(refusal("/dev/null", path()), "program '/dev/null': is not a regular file");
  EXPECT_NE(refusal("./plain/prog", path()).find("cannot be used"), std::string::npos);
  EXPECT_NE(refusal("plain", path()).find("/a/plain is not executable"), std::string::npos);
  EXPECT_EQ(refusal("nosuch", path()), "program 'nosuch': not found in PATH, nor in the current directory");
  EXPECT_EQ(refusal("", path()), "program '': the name is empty");
  EXPECT_NE(refusal(std::string_view("a\0b", 3), path()).find("zero byte"), std::string::npos);
}

TEST_F(ProgramSearch, AProgramInTheCurrentDirectoryIsSuggested) {
  make("prog", 0755);
  EXPECT_EQ(refusal("prog", path()), "program 'prog': not found in PATH; did you mean ./prog?");
}

}  // namespace
}  // namespace weft::net::launch
