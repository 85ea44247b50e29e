// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/codeside.h"

#include "ui/machine/codemodel.h"
#include "ui/machine/codeview.h"
#include "ui/style/fonts.h"
#include "ui/style/plainwidgets.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr int headingMargin = 8;
constexpr int leastSideWidth = 120;
constexpr int leastSideHeight = 72;

/// A message that wraps must not ask for a height: layouts take what is asked for so as the least.
class CodePages : public QStackedWidget
{
public:
    bool hasHeightForWidth() const override { return false; }
    QSize minimumSizeHint() const override { return {leastSideWidth, 1}; }
};

} // namespace

CodeSide::CodeSide(const QString &place, QWidget *parent)
    : QWidget(parent)
    , m_place(place)
    , m_title(new QLabel)
    , m_facts(new QLabel)
    , m_view(new CodeView)
    , m_message(makeMessageLabel())
    , m_button(new QPushButton)
    , m_stack(new CodePages)
{
    m_title->setFont(strongFont());
    m_facts->setObjectName(QStringLiteral("codeFacts"));
    m_facts->setEnabled(false);
    m_facts->setWordWrap(true);
    m_facts->setTextFormat(Qt::PlainText);
    m_facts->setMinimumWidth(1);
    m_message->setObjectName(QStringLiteral("codeMessage"));
    m_message->setTextFormat(Qt::PlainText);
    m_view->setAccessibleName(tr("Machine code of the %1").arg(m_place));

    auto *page = new QWidget;
    auto *column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->addStretch(1);
    column->addWidget(m_message);
    column->addWidget(m_button, 0, Qt::AlignHCenter);
    column->addStretch(1);
    m_stack->addWidget(m_view);
    m_stack->addWidget(page);

    auto *heading = new QVBoxLayout;
    heading->setContentsMargins(headingMargin, 2, headingMargin, 3);
    heading->setSpacing(0);
    heading->addWidget(m_title);
    heading->addWidget(m_facts);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(heading);
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_view);
    connect(m_button, &QPushButton::clicked, this, [this] {
        if (m_isBusy)
            emit stopRequested();
        else
            emit startRequested();
    });
    connect(m_view, &CodeView::sourceLineChosen, this, &CodeSide::sayMarked);
    setMessage({});
}

QSize CodeSide::minimumSizeHint() const
{
    return {leastSideWidth, leastSideHeight};
}

const MachineCode *CodeSide::code() const
{
    return m_view->codeModel()->code().get();
}

QString CodeSide::facts() const
{
    return m_factsText;
}

QString CodeSide::message() const
{
    return m_stack->currentIndex() == 0 ? QString() : m_message->text();
}

void CodeSide::setLabel(const QString &label)
{
    m_label = label;
    showHeading();
}

void CodeSide::showHeading()
{
    m_title->setText(m_marked.isEmpty() ? m_label : tr("%1 · %2").arg(m_label, m_marked));
    m_facts->setText(m_factsText);
    m_facts->setVisible(!m_factsText.isEmpty());
    m_view->setAccessibleDescription(m_title->text() + QLatin1Char('\n') + m_factsText);
}

void CodeSide::setCode(const SideCode &code)
{
    if (!code.code)
        return setMessage(code.message);
    m_isBusy = false;
    m_view->setCode(code.code);
    m_factsText = code.facts;
    m_marked.clear();
    showHeading();
    m_stack->setCurrentIndex(0);
}

void CodeSide::showText(const QString &text, const QString &button)
{
    m_view->setCode(nullptr);
    m_factsText.clear();
    m_marked.clear();
    showHeading();
    m_message->setText(text);
    m_button->setText(button);
    m_button->setVisible(!button.isEmpty());
    m_stack->setCurrentIndex(1);
}

void CodeSide::setMessage(const QString &text)
{
    m_isBusy = false;
    showText(text, {});
}

void CodeSide::setBusy(const QString &text)
{
    m_isBusy = true;
    showText(text, tr("Stop"));
}

void CodeSide::setStopped(const QString &text)
{
    m_isBusy = false;
    showText(text, tr("Compile"));
}

int CodeSide::markLine(int line)
{
    const int count = m_view->markLine(line);
    sayMarked(line);
    return count;
}

void CodeSide::sayMarked(int line)
{
    const int count = code() ? static_cast<int>(code()->rowsOf(line).size()) : 0;
    m_marked = line <= 0 || !code() ? QString()
               : count == 0         ? tr("no instruction of line %1").arg(line)
               : count == 1         ? tr("1 instruction of line %1").arg(line)
                                    : tr("%1 instructions of line %2").arg(count).arg(line);
    showHeading();
}

} // namespace klineage::ui
