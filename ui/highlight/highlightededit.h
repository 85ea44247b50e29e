// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/documenthighlighter.h"

#include <QPlainTextEdit>

#include <memory>

namespace klineage::ui {

/// A plain text in the code font, highlighted while it is read or edited.
class HighlightedEdit : public QPlainTextEdit
{
    Q_OBJECT

public:
    explicit HighlightedEdit(QWidget *parent = nullptr);

    void setLanguage(Language language);
    [[nodiscard]] const DocumentHighlighter *highlighter() const { return m_highlighter.get(); }

protected:
    bool event(QEvent *event) override;

private:
    std::unique_ptr<DocumentHighlighter> m_highlighter;
    Language m_language = Language::Plain;
};

} // namespace klineage::ui
