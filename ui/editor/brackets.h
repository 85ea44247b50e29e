// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QTextCursor;
class QTextDocument;

namespace klineage::ui {

/// Two brackets that belong together, as positions in a document; mismatched: they are of different kinds.
struct BracketPair {
    int first = -1;
    int second = -1; ///< -1: none was found
    bool mismatched = false;
};

/// The pair at a cursor position: the bracket before it, else the one after it. first is -1 when there is none. Brackets in strings
/// and comments are skipped. Looks at most 100,000 characters far.
[[nodiscard]] BracketPair bracketPairAt(const QTextDocument &document, int position);

} // namespace klineage::ui
