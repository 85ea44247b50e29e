// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/group.h"

#include <algorithm>

namespace klineage::run {

namespace {

const std::set<std::string> commonWords{"a",   "an",   "and", "are",  "as",  "at", "be",   "by",  "each",
                                        "for", "from", "in",  "into", "is",  "it", "its",  "of",  "on",
                                        "or",  "per",  "so",  "that", "the", "to", "with", "that"};

void addWord(std::set<std::string> &words, std::string &word)
{
    if (word.size() > 3 && word.ends_with('s') && !word.ends_with("ss"))
        word.pop_back();
    if (!word.empty() && commonWords.count(word) == 0)
        words.insert(word);
    word.clear();
}

} // namespace

std::set<std::string> wordsOf(std::string_view text)
{
    std::set<std::string> words;
    std::string word;
    for (const char c : text) {
        if (c >= 'A' && c <= 'Z')
            word += static_cast<char>(c - 'A' + 'a');
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & '\x80') != 0)
            word += c;
        else
            addWord(words, word);
    }
    addWord(words, word);
    return words;
}

double similarity(const std::set<std::string> &a, const std::set<std::string> &b)
{
    if (a.empty() && b.empty())
        return 1;
    const auto shared =
        std::count_if(a.begin(), a.end(), [&](const std::string &w) { return b.count(w) > 0; });
    return static_cast<double>(shared)
           / static_cast<double>(a.size() + b.size() - static_cast<std::size_t>(shared));
}

} // namespace klineage::run
