// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/deoptimize/proposal.h"

#include "core/files/jsonreader.h"

#include <algorithm>

namespace klineage::run {

namespace {

constexpr std::size_t maxProposalBytes = std::size_t{64} << 10;
constexpr std::size_t maxCategoryBytes = 40;
constexpr std::size_t maxLineBytes = 160;
constexpr std::size_t maxSentenceBytes = 600;

struct Category {
    const char *name;
    const char *meaning;
};

/// Outermost first: what is tuned on top of the others goes before what the others rest on.
constexpr Category categories[] = {
    {"autotuning", "tunables and the search over them"},
    {"templating", "constants at tunable slots, specialized variants of one kernel"},
    {"prefetch", "hints that fetch ahead of use"},
    {"work_scheduling", "persistent kernels, order of tiles, clusters, load balance"},
    {"warp_specialization", "producers and consumers as warps of their own"},
    {"software_pipelining", "several stages in flight, asynchronous copies, double buffers"},
    {"bulk_copy", "tensor-map or bulk-copy engines in place of loads by threads"},
    {"swizzling", "layouts that avoid bank conflicts"},
    {"epilogue", "how results are staged and stored"},
    {"tensor_core", "matrix instructions in place of scalar or vector arithmetic"},
    {"pass_fusion", "several passes or kernels made into one"},
    {"math_specialization", "own or approximate functions in place of the library's"},
    {"strength_reduction", "cheaper operations in place of dear ones"},
    {"granularity", "shape of blocks, work a thread or work-group"},
    {"vectorization", "vector loads, stores and arithmetic"},
    {"register_blocking", "several results a thread, kept in registers"},
    {"memory_staging", "reused data kept in shared or local memory"},
    {"data_layout", "operands packed or transposed beforehand"},
    {"work_distribution", "how rows, tiles or reductions are spread over threads"},
};

std::string lineOf(files::JsonReader &reader, const char *key, std::size_t limit)
{
    std::string text = reader.text(key, limit);
    const bool isLine =
        std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (!isLine || text.find_first_not_of(' ') == std::string::npos)
        reader.refuse(key, "expected one line of text");
    return text;
}

bool isCategory(const std::string &name)
{
    return !name.empty() && name.size() <= maxCategoryBytes && name[0] >= 'a' && name[0] <= 'z'
           && std::all_of(name.begin(), name.end(), [](char c) {
                  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
              });
}

Proposal readProposal(const nlohmann::json &json)
{
    files::JsonReader reader(json, {});
    Proposal proposal;
    if (reader.find("complete") && reader.boolean("complete")) {
        proposal.complete = true;
        proposal.reason = lineOf(reader, "reason", maxSentenceBytes);
        reader.finish();
        return proposal;
    }
    proposal.category = reader.text("category", maxLineBytes);
    if (!isCategory(proposal.category))
        reader.refuse("category", "expected at most 40 of a-z, 0-9 and '_', as in 'register_blocking'");
    proposal.locus = lineOf(reader, "locus", maxLineBytes);
    proposal.title = lineOf(reader, "title", maxLineBytes);
    proposal.summary = lineOf(reader, "summary", maxSentenceBytes);
    reader.finish();
    return proposal;
}

} // namespace

Result<Proposal> parseProposal(const std::string &json)
{
    if (json.size() > maxProposalBytes)
        return fail(ErrorCode::InvalidInput, "The JSON of the reply is longer than 64 KiB.");
    return files::parseJsonLine(json, "the JSON of the reply", readProposal);
}

std::string categoryList()
{
    std::string text;
    for (const Category &category : categories)
        text += std::string("- `") + category.name + "`: " + category.meaning + '\n';
    return text;
}

} // namespace klineage::run
