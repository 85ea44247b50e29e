// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diff/changes.h"

#include <dlfcn.h>
#include <git2.h>

#include <new>

namespace klineage::diff {

namespace {

// Patience looks for lines that occur once a side, which keeps functions together in a rewritten kernel. It is quadratic in bad cases,
// so long texts get Myers with xdiff's own cost limits.
constexpr std::size_t patienceBytes = 512 * 1024;

/// libgit2, loaded when texts are first compared and kept. Null members: it is not installed.
struct Library {
    Library()
    {
        void *library = ::dlopen(KLINEAGE_GIT2_NAME, RTLD_NOW | RTLD_LOCAL);
        const auto init =
            library ? reinterpret_cast<decltype(&git_libgit2_init)>(::dlsym(library, "git_libgit2_init"))
                    : nullptr;
        if (init && init() > 0)
            diffBuffers = reinterpret_cast<decltype(&git_diff_buffers)>(::dlsym(library, "git_diff_buffers"));
    }
    decltype(&git_diff_buffers) diffBuffers = nullptr;
};

struct Collector {
    std::vector<Block> blocks;
    std::stop_token stop;
};

// xdiff counts from 1, and names the line *before* an empty range.
LineRange toRange(int start, int count)
{
    return {count > 0 ? start - 1 : start, count};
}

int onHunk(const git_diff_delta *, const git_diff_hunk *hunk, void *payload) noexcept
{
    auto *collector = static_cast<Collector *>(payload);
    if (collector->stop.stop_requested())
        return GIT_EUSER;
    try {
        collector->blocks.push_back(
            {toRange(hunk->old_start, hunk->old_lines), toRange(hunk->new_start, hunk->new_lines)});
    } catch (const std::bad_alloc &) {
        return GIT_EUSER;
    }
    return 0;
}

} // namespace

std::optional<std::vector<Block>> changedBlocks(std::string_view left, std::string_view right,
                                                bool ignoreWhitespace, std::stop_token stop)
{
    static const Library library;
    if (!library.diffBuffers)
        return std::nullopt;
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    options.context_lines = 0;
    options.interhunk_lines = 0;
    options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
    if (left.size() + right.size() <= patienceBytes)
        options.flags |= GIT_DIFF_PATIENCE;
    if (ignoreWhitespace)
        options.flags |= GIT_DIFF_IGNORE_WHITESPACE;

    Collector collector{{}, stop};
    // A null buffer means "no such file" to libgit2; an empty text is a text.
    const char *leftData = left.data() ? left.data() : "";
    const char *rightData = right.data() ? right.data() : "";
    const int code = library.diffBuffers(leftData, left.size(), nullptr, rightData, right.size(), nullptr,
                                         &options, nullptr, nullptr, onHunk, nullptr, &collector);
    if (code != 0 || stop.stop_requested())
        return std::nullopt;
    return std::move(collector.blocks);
}

} // namespace klineage::diff
