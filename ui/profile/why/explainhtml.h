// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/explain/explain.h"

#include <QString>

#include <optional>
#include <string>

namespace klineage::ui {

/// What a link of an explanation leads to.
struct ExplainLink {
    QString metric; ///< a row of Profile Δ; empty: a line
    int side = 0;   ///< 0 left, 1 right
    int line = 0;   ///< 1-based
};
/// Nothing for what is no such link.
[[nodiscard]] std::optional<ExplainLink> explainLink(const QString &target);

/// Links to a metric's row, and to a line (side: 0 left, 1 right), around rich text.
[[nodiscard]] QString metricLink(const std::string &metric, const QString &html);
[[nodiscard]] QString sourceLineLink(int side, int line, const QString &html);

/// One paragraph and the causes, each with links to its figure and its lines, as rich text in the current theme's colours. Pure.
[[nodiscard]] QString explainHtml(const gate::Explanation &explanation);

} // namespace klineage::ui
