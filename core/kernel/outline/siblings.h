// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::kernel {

/// A source with the files beside it in the place of their includes.
struct WithSiblings {
    std::string text;
    std::vector<std::string> notices; ///< a sentence a file that was put in
};

inline constexpr int maxSiblings = 64;

/// Replaces each `#include "name"` that names a file of `file`'s folder, or one below it, by that file's text between two comments that name it,
/// and in that text again: a state is one file, whose line numbers are those of every message. Each file is put in once, as if it had
/// `#pragma once`. Names that lead out of the folder (links too) and those of no file stay as they are: the compiler says what it may
/// open. Errors: InvalidInput (the whole is longer than maxCandidateBytes, or there are more than maxSiblings), Io.
[[nodiscard]] Result<WithSiblings> withSiblings(std::string_view text, const std::filesystem::path &file);

} // namespace klineage::kernel
