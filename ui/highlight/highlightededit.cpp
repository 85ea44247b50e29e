// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/highlightededit.h"

#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QEvent>

namespace klineage::ui {

HighlightedEdit::HighlightedEdit(QWidget *parent)
    : QPlainTextEdit(parent)
{
    setFont(codeFont());
    setFrameShape(QFrame::NoFrame);
    connect(this, &QPlainTextEdit::updateRequest, this, [this] {
        if (m_highlighter)
            m_highlighter->setVisible(firstVisibleBlock().blockNumber(),
                                      cursorForPosition({0, viewport()->height()}).blockNumber());
    });
}

void HighlightedEdit::setLanguage(Language language)
{
    if (m_highlighter && language == m_language)
        return;
    m_language = language;
    m_highlighter = std::make_unique<DocumentHighlighter>(document(), language);
    m_highlighter->setPalette(CodePalette::from(Theme::current()));
}

bool HighlightedEdit::event(QEvent *event)
{
    const bool handled = QPlainTextEdit::event(event);
    if (event->type() == QEvent::ApplicationFontChange && font() != codeFont())
        setFont(codeFont());
    if (event->type() == QEvent::PaletteChange && m_highlighter)
        m_highlighter->setPalette(CodePalette::from(Theme::current()));
    return handled;
}

} // namespace klineage::ui
