// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/listing.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace klineage::gate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view firstLine = "# machine code by ";
constexpr std::string_view kernelMark = ".kernel ";
constexpr std::size_t shaDigitsInName = 12;

/// Tabs and line ends separate what is kept.
std::string plain(std::string_view text)
{
    std::string out(text);
    std::replace_if(
        out.begin(), out.end(), [](unsigned char c) { return c < ' '; }, ' ');
    return out;
}

std::string writeStalls(const std::map<std::string, std::int64_t> &stalls)
{
    std::string out;
    for (const auto &[reason, samples] : stalls)
        out += (out.empty() ? "" : " ") + reason + '=' + std::to_string(samples);
    return out;
}

template <typename Number>
bool readWhole(std::string_view text, Number &value, int base = 10)
{
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size() && value >= 0;
}

std::string_view upTo(char separator, std::string_view &rest)
{
    const std::size_t end = rest.find(separator);
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return part;
}

bool readStalls(std::string_view text, std::map<std::string, std::int64_t> &stalls)
{
    while (!text.empty()) {
        std::string_view item = upTo(' ', text);
        const std::string_view reason = upTo('=', item);
        std::int64_t samples = 0;
        if (reason.empty() || !readWhole(item, samples) || !stalls.emplace(reason, samples).second)
            return false;
    }
    return true;
}

bool readInstruction(std::string_view row, ListedInstruction &out)
{
    if (std::count(row.begin(), row.end(), '\t') != 4)
        return false;
    const bool numbers = readWhole(upTo('\t', row), out.offset, 16) && readWhole(upTo('\t', row), out.line)
                         && readWhole(upTo('\t', row), out.samples);
    const bool stalls = readStalls(upTo('\t', row), out.stalls);
    out.text = row;
    return numbers && stalls && !out.text.empty();
}

} // namespace

std::string writeListing(const Listing &listing)
{
    std::string out = std::string(firstLine) + plain(listing.compiler) + '\n';
    std::string kernel;
    for (const ListedInstruction &instruction : listing.instructions) {
        if (std::string name = plain(instruction.kernel); name != kernel) {
            out += std::string(kernelMark) + name + '\n';
            kernel = std::move(name);
        }
        out += fmt::format("{:04x}\t{}\t{}\t{}\t{}\n", instruction.offset, instruction.line,
                           instruction.samples, writeStalls(instruction.stalls), plain(instruction.text));
    }
    return out;
}

Result<Listing> parseListing(std::string_view text, const std::string &where)
{
    const auto refuse = [&](std::size_t line, const std::string &what) {
        return fail(ErrorCode::InvalidInput, where + ':' + std::to_string(line) + ": " + what);
    };
    if (text.size() > maxListingBytes)
        return refuse(1, "the listing is longer than " + std::to_string(maxListingBytes) + " bytes.");
    if (!text.starts_with(firstLine) || text.back() != '\n')
        return refuse(1,
                      "is no listing: it begins with '" + std::string(firstLine) + "' and ends its lines.");
    Listing listing;
    listing.compiler = upTo('\n', text).substr(firstLine.size());
    std::string kernel;
    for (std::size_t line = 2; !text.empty(); ++line) {
        const std::string_view row = upTo('\n', text);
        if (row.starts_with(kernelMark)) {
            kernel = row.substr(kernelMark.size());
            continue;
        }
        ListedInstruction instruction;
        instruction.kernel = kernel;
        if (kernel.empty() || !readInstruction(row, instruction))
            return refuse(line, "expected the offset, line, samples, stalls and text of an instruction, "
                                "separated by tabs, under the name of its kernel.");
        listing.instructions.push_back(std::move(instruction));
    }
    return listing;
}

std::string listingFileName(std::string_view sha)
{
    return "listings/" + std::string(sha.substr(0, shaDigitsInName)) + ".sass";
}

Status storeListing(const fs::path &directory, std::string_view text)
{
    const fs::path path = directory / listingFileName(files::sha256Hex(text));
    if (const auto stored = files::readFile(path, maxListingBytes); stored && *stored == text)
        return {};
    std::error_code problem;
    fs::create_directories(path.parent_path(), problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + path.parent_path().string() + "': " + problem.message() + '.');
    return files::writeFileAtomic(path, text);
}

Result<Listing> readListing(const fs::path &directory, const std::string &sha)
{
    const fs::path path = directory / listingFileName(sha);
    const auto text = files::readFile(path, maxListingBytes);
    if (!text)
        return tl::unexpected(text.error());
    if (files::sha256Hex(*text) != sha)
        return fail(ErrorCode::Conflict,
                    "'" + path.string() + "' was changed after its trial: its sha-256 is another.");
    return parseListing(*text, path.string());
}

} // namespace klineage::gate
