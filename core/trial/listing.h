// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// One machine instruction of a candidate, and how many samples of the program counter found warps there.
struct ListedInstruction {
    std::string kernel;
    std::uint64_t offset = 0; ///< bytes from the kernel's beginning
    int line = 0;             ///< of the candidate's file, 1-based; 0: it comes from elsewhere
    std::int64_t samples = 0;
    std::map<std::string, std::int64_t> stalls; ///< why they waited -> samples; "selected": they did not
    std::string text;                           ///< "@!P0 BRA `(.L_x_1)"
};

/// What a trial keeps of the machine code that it measured, so that nothing has to be compiled or sampled again to look at it. A file
/// of text (core/trial/README.md has the form), named by its sha-256 beside trials.jsonl.
struct Listing {
    std::string compiler;                        ///< "NVRTC 13.0.48, sm_90a"
    std::vector<ListedInstruction> instructions; ///< kernel by kernel, in the order of the code
};

inline constexpr std::size_t maxListingBytes = std::size_t{4} << 20;

[[nodiscard]] std::string writeListing(const Listing &listing);
/// InvalidInput with the line for what writeListing() would not write.
[[nodiscard]] Result<Listing> parseListing(std::string_view text, const std::string &where);

/// "listings/0123456789ab.sass": where the listing with this sha-256 stands, relative to the folder of its trials.
[[nodiscard]] std::string listingFileName(std::string_view sha);

/// Stores the text under its name; one that is there already stays.
[[nodiscard]] Status storeListing(const std::filesystem::path &directory, std::string_view text);
/// Conflict when the file is not the one that the trial names.
[[nodiscard]] Result<Listing> readListing(const std::filesystem::path &directory, const std::string &sha);

} // namespace klineage::gate
