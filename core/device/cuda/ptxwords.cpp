// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/ptxwords.h"

#include <cctype>

namespace klineage::gate::cuda {

namespace {

/// How many characters from `at` on are a comment; 0: none begins there.
std::size_t commentAt(std::string_view text, std::size_t at)
{
    const auto toEnd = [&](std::string_view mark) {
        const auto end = text.find(mark, at + 2);
        return end == std::string_view::npos ? text.size() - at : end + mark.size() - at;
    };
    const std::string_view begin = text.substr(at, 2);
    return begin == "//" ? toEnd("\n") : begin == "/*" ? toEnd("*/") : 0;
}

bool isOfWord(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

} // namespace

LocalUse localUseOf(std::string_view ptx)
{
    LocalUse use;
    for (std::size_t at = 0; at < ptx.size();) {
        if (const std::size_t comment = commentAt(ptx, at); comment > 0) {
            at += comment;
        } else if (ptx[at] == '"') { // a file's name, or a pragma
            const auto end = ptx.find('"', at + 1);
            // Who takes an escaped quote for the end of it reads code for words, and words for code.
            const std::string_view words = ptx.substr(at, end == std::string_view::npos ? end : end - at);
            use.isUnclear = use.isUnclear || words.find('\\') != std::string_view::npos;
            at = end == std::string_view::npos ? ptx.size() : end + 1;
        } else if (!isOfWord(ptx[at])) {
            ++at;
        } else {
            std::size_t end = at;
            while (end < ptx.size() && isOfWord(ptx[end]))
                ++end;
            const std::string_view word = ptx.substr(at, end - at);
            if (word == "alloca" || word == "stacksave" || word == "stackrestore")
                use.takesFromStack = true;
            if (word == "local" || word == "call")
                use.any = true;
            at = end;
        }
    }
    use.any = use.any || use.takesFromStack;
    return use;
}

} // namespace klineage::gate::cuda
