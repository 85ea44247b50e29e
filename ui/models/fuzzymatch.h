// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QVector>

#include <optional>

namespace klineage::ui {

/// How well text contains the letters of a pattern, in their order.
struct FuzzyMatch {
    int score = 0;          ///< higher is better; comparable for one pattern
    QVector<int> positions; ///< of the matched characters in the text, rising
};

/// Case is ignored. Words of the pattern (apart by spaces) are looked for one by one, in any order. Runs, starts of words and the
/// start of the text count more, gaps cost. An empty pattern matches with score 0; nothing when a letter is missing.
[[nodiscard]] std::optional<FuzzyMatch> fuzzyMatch(const QString &pattern, const QString &text);

/// Whether there would be a match of one word, without looking for the best; both in lower case.
[[nodiscard]] bool hasLettersInOrder(const QString &word, const QString &text);

} // namespace klineage::ui
