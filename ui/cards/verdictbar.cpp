// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/verdictbar.h"

#include "ui/style/flowlayout.h"
#include "ui/style/fonts.h"
#include "ui/style/keyedcommand.h"

#include <QAction>
#include <QApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include <utility>

namespace klineage::ui {

namespace {

constexpr int sideMargin = 10;
constexpr int buttonSpacing = 6;

QString standingText(const skills::CardRecord &record)
{
    const QString card = VerdictBar::tr("%1, revision %2")
                             .arg(QString::fromStdString(record.card.name))
                             .arg(record.card.revision);
    const skills::Review *review = record.standingReview();
    if (!review)
        return VerdictBar::tr("%1: not reviewed").arg(card);
    const QString author = QString::fromStdString(review->author);
    switch (review->verdict) {
    case skills::ReviewVerdict::Approve:
        return VerdictBar::tr("%1: ✓ approved by %2").arg(card, author);
    case skills::ReviewVerdict::Reject:
        return VerdictBar::tr("%1: ✗ rejected by %2").arg(card, author);
    case skills::ReviewVerdict::NeedsEvidence:
        return VerdictBar::tr("%1: ? needs evidence, says %2").arg(card, author);
    default:
        return VerdictBar::tr("%1: not reviewed").arg(card);
    }
}

QString withKey(const QString &text, const QAction *action)
{
    const QString key = action->shortcut().toString(QKeySequence::NativeText);
    return key.isEmpty() ? text : text + QStringLiteral("  ") + key;
}

} // namespace

VerdictBar::VerdictBar(QWidget *parent)
    : QWidget(parent)
    , m_standing(new QLabel)
    , m_reviewer(new QToolButton)
    , m_buttonArea(new QWidget)
    , m_asking(new QWidget)
    , m_question(new QLabel)
    , m_reason(new QLineEdit)
    , m_confirm(new QPushButton)
{
    setProperty("notExported", true);
    setObjectName(QStringLiteral("verdictBar"));
    m_standing->setObjectName(QStringLiteral("standing"));
    m_standing->setForegroundRole(QPalette::PlaceholderText);
    m_standing->setWordWrap(true);
    m_reviewer->setObjectName(QStringLiteral("reviewer"));
    m_reviewer->setAutoRaise(true);
    m_reviewer->setFont(captionFont());
    m_question->setObjectName(QStringLiteral("question"));
    m_question->setWordWrap(true);
    m_question->setBuddy(m_reason);
    m_question->setTextFormat(Qt::PlainText);

    auto *answering = new QHBoxLayout;
    answering->addWidget(m_reason, 1);
    answering->addWidget(m_confirm, 0, Qt::AlignRight);
    auto *asking = new QVBoxLayout(m_asking);
    asking->setContentsMargins(0, 0, 0, 2);
    asking->setSpacing(4);
    asking->addWidget(m_question);
    asking->addLayout(answering);
    m_asking->hide();
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(sideMargin, 6, sideMargin, 8);
    column->addWidget(m_asking);
    auto *standing = new QHBoxLayout;
    standing->addWidget(m_standing, 1);
    standing->addWidget(m_reviewer, 0, Qt::AlignTop);
    column->addLayout(standing);
    column->addWidget(m_buttonArea);

    connect(m_reason, &QLineEdit::returnPressed, this, &VerdictBar::answer);
    connect(m_confirm, &QPushButton::clicked, this, &VerdictBar::answer);
    connect(m_reason, &QLineEdit::textChanged, this,
            [this](const QString &text) { m_confirm->setEnabled(!text.trimmed().isEmpty()); });
    QAction *leave = addKeyedCommand(m_asking, QStringLiteral("card.leaveQuestion"),
                                     tr("Leave the question about the card"), QKeySequence(Qt::Key_Escape));
    connect(leave, &QAction::triggered, this, &VerdictBar::stopAsking);
}

void VerdictBar::setButtons(const QList<QList<Button>> &rows)
{
    auto *area = new QVBoxLayout(m_buttonArea);
    area->setContentsMargins(0, 0, 0, 0);
    area->setSpacing(buttonSpacing);
    for (const QList<Button> &row : rows) {
        auto *line = new FlowLayout(buttonSpacing);
        QList<Shown> shown;
        for (const Button &wanted : row) {
            auto *button = new QPushButton;
            button->setAutoDefault(false);
            button->setEnabled(wanted.action->isEnabled());
            if (wanted.isPrimary)
                button->setObjectName(QStringLiteral("primaryButton"));
            connect(button, &QPushButton::clicked, wanted.action, &QAction::trigger);
            connect(wanted.action, &QAction::changed, button, [this, button, action = wanted.action] {
                button->setEnabled(action->isEnabled());
                nameButtons();
            });
            line->addWidget(button);
            shown.push_back({wanted, button});
        }
        area->addLayout(line);
        m_rows.push_back(shown);
    }
    nameButtons();
}

/// No button is ever cut off: a row that does not fit takes its short names, then drops its keys, then both.
void VerdictBar::nameButtons()
{
    for (const QList<Shown> &row : std::as_const(m_rows)) {
        for (int form = 0; form < 4; ++form) {
            int wanted = 2 * sideMargin + buttonSpacing * static_cast<int>(row.size() - 1);
            for (const Shown &shown : row) {
                const QString &name = form % 2 == 1 ? shown.wanted.shortText : shown.wanted.text;
                shown.button->setText(form < 2 ? withKey(name, shown.wanted.action) : name);
                shown.button->setToolTip(textWithKey(shown.wanted.action->toolTip(), shown.wanted.action));
                shown.button->setAccessibleName(shown.wanted.text);
                wanted += shown.button->sizeHint().width();
            }
            if (wanted <= width())
                break;
        }
    }
}

void VerdictBar::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    nameButtons();
}

void VerdictBar::setCard(const skills::CardRecord &record, bool hasDraft)
{
    m_standing->setText(hasDraft ? tr("%1 · an unsaved draft is kept: press Edit").arg(standingText(record))
                                 : standingText(record));
}

void VerdictBar::setCards(const QStringList &names)
{
    constexpr qsizetype mostNamed = 3;
    const QString more = names.size() > mostNamed ? QStringLiteral(", …") : QString();
    m_standing->setText((names.size() == 1
                             ? tr("1 card is selected; verdicts go to it: %1")
                             : tr("%1 cards are selected; verdicts go to all of them: %2").arg(names.size()))
                            .arg(names.mid(0, mostNamed).join(QStringLiteral(", ")) + more));
}

void VerdictBar::setReviewer(const QString &name, QAction *change)
{
    constexpr int mostWidth = 130;
    if (!m_reviewer->property("listens").toBool()) {
        m_reviewer->setProperty("listens", true);
        connect(m_reviewer, &QToolButton::clicked, change, &QAction::trigger);
    }
    const QString text = name.isEmpty() ? tr("Unsigned ✎") : tr("%1 ✎").arg(name);
    m_reviewer->setText(m_reviewer->fontMetrics().elidedText(text, Qt::ElideMiddle, mostWidth));
    m_reviewer->setToolTip(
        name.isEmpty() ? textWithKey(tr("The name beside your verdicts is asked for once"), change)
                       : textWithKey(tr("Verdicts and comments are signed %1. Change").arg(name), change));
    m_reviewer->setAccessibleName(name.isEmpty() ? tr("Set the reviewer's name")
                                                 : tr("Reviewer: %1; change").arg(name));
}

void VerdictBar::showProblem(const QString &text)
{
    m_standing->setText(text);
}

QString VerdictBar::standing() const
{
    return m_standing->text();
}

void VerdictBar::ask(const QString &question, const QString &confirm, const QString &prefilled,
                     const std::function<void(const QString &)> &answered)
{
    startAsking();
    m_answered = answered;
    m_confirm->setText(confirm);
    m_confirm->setAutoDefault(false);
    m_question->setText(question);
    m_reason->setAccessibleName(question);
    m_reason->show();
    m_reason->setText(prefilled);
    m_reason->selectAll();
    m_confirm->setEnabled(!prefilled.trimmed().isEmpty());
    m_asking->show();
    m_reason->setFocus();
}

void VerdictBar::startAsking()
{
    if (!isAsking())
        m_focusBefore = QApplication::focusWidget();
}

void VerdictBar::confirm(const QString &question, const QString &confirm, const std::function<void()> &agreed)
{
    startAsking();
    m_answered = [agreed](const QString &) { agreed(); };
    m_question->setText(question);
    m_reason->hide();
    m_confirm->setText(confirm);
    m_confirm->setToolTip(question);
    m_confirm->setAutoDefault(true); // Enter presses it
    m_confirm->setEnabled(true);
    m_asking->show();
    m_confirm->setFocus();
}

bool VerdictBar::isAsking() const
{
    return !m_asking->isHidden();
}

void VerdictBar::stopAsking()
{
    if (!isAsking())
        return;
    const bool hadFocus = m_asking->isAncestorOf(QApplication::focusWidget());
    m_asking->hide();
    m_answered = nullptr;
    if (hadFocus && m_focusBefore)
        m_focusBefore->setFocus();
    emit askingEnded();
}

void VerdictBar::answer()
{
    const QString text = m_reason->text().trimmed();
    if (text.isEmpty() && !m_reason->isHidden())
        return;
    const auto answered = m_answered;
    stopAsking();
    if (answered)
        answered(text);
}

} // namespace klineage::ui
