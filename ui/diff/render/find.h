// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/render/document.h"

#include <vector>

namespace klineage::ui {

struct FindMatch {
    int diffRow = 0;
    Side side = Side::Left;
    int line = 0;
    int begin = 0; ///< UTF-8 bytes
    int length = 0;
};

struct FindResult {
    std::vector<FindMatch> matches; ///< from top to bottom, left before right
    bool truncated = false;         ///< there are more
};

/// Occurrences of a text on both sides; the case of ASCII letters counts only when the text has a capital. Equal rows are searched on
/// one side. At most `limit` matches.
[[nodiscard]] FindResult findInDocument(const Document &document, const QString &text,
                                        const std::stop_token &stop = {}, std::size_t limit = 10000);

} // namespace klineage::ui
