// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/fuzzymatch.h"

#include <QStringList>

#include <algorithm>
#include <limits>
#include <vector>

namespace klineage::ui {

namespace {

constexpr int hit = 4;
constexpr int runBonus = 6;
constexpr int wordBonus = 8;
constexpr int startBonus = 4;
constexpr int gapCost = 1;
constexpr int longestGapCost = 6;
constexpr int never = std::numeric_limits<int>::min() / 2;

/// A cheap no for the many texts that lack a letter.
bool hasLetters(const QString &word, const QString &text)
{
    qsizetype i = 0;
    for (const QChar letter : word) {
        while (i < text.size() && text[i].toLower() != letter.toLower())
            ++i;
        if (i++ >= text.size())
            return false;
    }
    return true;
}

bool startsWord(const QString &text, int i)
{
    if (i == 0)
        return true;
    const QChar before = text[i - 1];
    const QChar here = text[i];
    return !before.isLetterOrNumber() || (before.isLower() && here.isUpper())
           || (before.isLetter() && here.isDigit());
}

/// The best alignment of one word: a table over (letter of the word, position in the text) whose cell is the best score of an
/// alignment that puts this letter at this position.
std::optional<FuzzyMatch> matchWord(const QString &word, const QString &text)
{
    const int letters = static_cast<int>(word.size());
    const int size = static_cast<int>(text.size());
    if (!hasLetters(word, text))
        return {};
    std::vector<int> best(static_cast<std::size_t>(letters * size), never);
    std::vector<int> from(static_cast<std::size_t>(letters * size), -1);
    const auto at = [size](int letter, int position) {
        return static_cast<std::size_t>(letter * size + position);
    };

    for (int letter = 0; letter < letters; ++letter) {
        int bestBefore =
            never; // the best of the previous letter that is more than a run away, gap cost left out
        int bestBeforeAt = -1;
        for (int i = letter; i < size; ++i) {
            if (letter > 0 && i >= 2 && best[at(letter - 1, i - 2)] > bestBefore - gapCost) {
                bestBefore = best[at(letter - 1, i - 2)];
                bestBeforeAt = i - 2;
            }
            if (text[i].toLower() != word[letter].toLower())
                continue;
            const int own = hit + (startsWord(text, i) ? wordBonus : 0) + (i == 0 ? startBonus : 0);
            if (letter == 0) {
                best[at(0, i)] = own - std::min(i, longestGapCost) / 2;
                continue;
            }
            const int run =
                best[at(letter - 1, i - 1)] == never ? never : best[at(letter - 1, i - 1)] + runBonus;
            const int gap = bestBefore == never
                                ? never
                                : bestBefore - std::min(gapCost * (i - bestBeforeAt - 1), longestGapCost);
            if (run == never && gap == never)
                continue;
            best[at(letter, i)] = own + std::max(run, gap);
            from[at(letter, i)] = run >= gap ? i - 1 : bestBeforeAt;
        }
    }

    FuzzyMatch match{never, {}};
    int end = -1;
    for (int i = letters - 1; i < size; ++i) {
        if (best[at(letters - 1, i)] > match.score) {
            match.score = best[at(letters - 1, i)];
            end = i;
        }
    }
    if (end < 0)
        return {};
    for (int letter = letters - 1, i = end; letter >= 0; i = from[at(letter, i)], --letter)
        match.positions.prepend(i);
    return match;
}

} // namespace

bool hasLettersInOrder(const QString &word, const QString &text)
{
    qsizetype from = 0;
    for (const QChar letter : word) {
        const qsizetype at = text.indexOf(letter, from);
        if (at < 0)
            return false;
        from = at + 1;
    }
    return true;
}

std::optional<FuzzyMatch> fuzzyMatch(const QString &pattern, const QString &text)
{
    FuzzyMatch all;
    const QStringList words = pattern.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    for (const QString &word : words) {
        const auto match = matchWord(word, text);
        if (!match)
            return {};
        all.score += match->score;
        all.positions += match->positions;
    }
    std::sort(all.positions.begin(), all.positions.end());
    all.positions.erase(std::unique(all.positions.begin(), all.positions.end()), all.positions.end());
    // Of two texts that match equally well the shorter one is meant.
    if (!words.isEmpty())
        all.score -= std::min<int>(static_cast<int>(text.size()), 60) / 12;
    return all;
}

} // namespace klineage::ui
