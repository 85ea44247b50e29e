// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/document.h"

namespace klineage::ui {

namespace {

/// Rows for texts that are not compared.
diff::Diff uncompared(int leftLines, int rightLines)
{
    diff::Diff diff;
    const int rows = std::max(leftLines, rightLines);
    diff.rows.reserve(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i)
        diff.rows.push_back({diff::Row::Kind::Equal, i < leftLines ? i : -1, i < rightLines ? i : -1, -1});
    return diff;
}

} // namespace

DocumentPtr makeDocument(SideTextPtr left, SideTextPtr right, const diff::Options &options,
                         const std::stop_token &stop)
{
    auto document = std::make_shared<Document>();
    document->left = std::move(left);
    document->right = std::move(right);
    const bool comparable =
        document->left && document->left->message.isEmpty() && document->right->message.isEmpty();
    if (comparable) {
        document->diff =
            diff::compare(document->left->text.bytes(), document->right->text.bytes(), options, stop);
        if (document->diff.cancelled)
            return nullptr;
    } else {
        document->diff =
            uncompared(document->left ? document->left->text.count() : 0, document->right->text.count());
    }
    return document;
}

SideTextPtr makeSideText(std::string bytes, Language language, const std::stop_token &stop, std::string sha)
{
    auto side = std::make_shared<SideText>();
    side->text = TextLines(std::move(bytes));
    side->language = language;
    side->sha = std::move(sha);
    if (side->text.count() <= highlightAtOnceLines)
        side->runs = highlightAll(side->text, language, stop);
    return side;
}

SideTextPtr makeSideMessage(QString message)
{
    auto side = std::make_shared<SideText>();
    side->message = std::move(message);
    return side;
}

} // namespace klineage::ui
