// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// One parser under test. Each fuzz_<parser>.cpp defines both functions; it is linked either with driver.cpp
/// (a deterministic loop that runs with the tests, any compiler) or with libFuzzer (clang,
/// KLINEAGE_FUZZERS=ON).
struct FuzzTarget {
    /// Texts to begin with, written in the source: they exist even where no file does.
    std::vector<std::string> seeds;
    /// Ends of the names of shipped files to begin with: "workload.toml", ".cu".
    std::vector<std::string> seedFiles;
    /// Cuts a shipped file into seeds; left out: the whole file.
    std::function<std::vector<std::string>(const std::string &)> cut;
    /// Words that the format gives a meaning to.
    std::vector<std::string> words;
    int runs = 4000;
};
FuzzTarget fuzzTarget();

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

/// What must hold for every input. A failure ends the program; the driver keeps the input.
inline void require(bool holds, const char *what)
{
    if (holds)
        return;
    std::fprintf(stderr, "violated: %s\n", what);
    std::abort();
}

/// The message of a refused input begins with the name it was given.
inline void requireLocated(const klineage::Error &error, std::string_view name)
{
    require(error.code == klineage::ErrorCode::InvalidInput, "bad input is InvalidInput");
    require(error.message.starts_with(name), "the message names the file");
    require(error.message.ends_with('.') || error.message.ends_with('?'), "the message is a sentence");
}
