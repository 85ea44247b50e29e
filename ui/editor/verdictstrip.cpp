// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/editor/verdictstrip.h"

#include "ui/models/undecidedtext.h"
#include "ui/style/chip.h"
#include "ui/style/format.h"
#include "ui/style/icons.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QToolButton>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr int detailLines = 7;
constexpr qsizetype shortValue = 4; ///< "3" in a sentence may be about something else

/// What the sentence has not said already, a line each.
QStringList evidenceLines(const gate::Verdict &verdict)
{
    QStringList lines;
    const QString sentence = QString::fromStdString(verdict.message);
    for (const gate::Evidence &entry : verdict.evidence) {
        const QString value = QString::fromStdString(entry.value);
        if (value.size() < shortValue || !sentence.contains(value))
            lines << QStringLiteral("%1: %2").arg(
                QString::fromStdString(entry.name).replace(QLatin1Char('_'), QLatin1Char(' ')), value);
    }
    return lines;
}

/// A label breaks lines between words: of a word that no line holds, such as a path, the middle is left out.
QString withFittingWords(const QString &text, const QFontMetrics &metrics, int width)
{
    QStringList words = text.split(QLatin1Char(' '));
    for (QString &word : words)
        word = metrics.elidedText(word, Qt::ElideMiddle, width);
    return words.join(QLatin1Char(' '));
}

} // namespace

VerdictStrip::VerdictStrip(QWidget *parent)
    : QFrame(parent)
    , m_status(new ChipLabel(this))
    , m_change(new ChipLabel(this))
    , m_stale(new ChipLabel(this))
    , m_line(new QLabel(this))
    , m_again(new QToolButton(this))
    , m_more(new QToolButton(this))
    , m_details(new QPlainTextEdit(this))
{
    m_line->setObjectName(QStringLiteral("verdictLine"));
    m_line->setTextFormat(Qt::PlainText);
    m_line->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_line->installEventFilter(this);
    m_stale->setObjectName(QStringLiteral("verdictStale"));
    m_stale->setChip({tr("of an earlier text"), QStringLiteral("!"), Tone::Warn});
    m_stale->setToolTip(tr("The code has changed since: gate it again for a verdict of what stands here."));
    m_stale->hide();
    m_again->setText(tr("Again"));
    m_again->setObjectName(QStringLiteral("verdictAgain"));
    m_again->setFocusPolicy(Qt::StrongFocus);
    m_again->hide();
    m_more->setText(tr("Details"));
    m_more->setToolTip(tr("All that the gate said: the whole sentence, its evidence, and what to try"));
    m_more->setObjectName(QStringLiteral("verdictDetails"));
    m_more->setCheckable(true);
    m_more->setAutoRaise(true);
    m_more->setFocusPolicy(Qt::StrongFocus);
    m_more->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_more->setArrowType(Qt::RightArrow);
    m_details->setReadOnly(true);
    m_details->setTabChangesFocus(true);
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_details->setFrameShape(QFrame::NoFrame);
    m_details->setAccessibleName(tr("Details of the verdict"));
    m_details->setFixedHeight(fontMetrics().lineSpacing() * detailLines);
    m_details->hide();
    connect(m_more, &QToolButton::toggled, this, [this](bool open) {
        m_more->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
        m_details->setVisible(open);
        fit();
    });
    auto *close = new QToolButton(this);
    close->setIcon(icon(QStringLiteral("close")));
    close->setAutoRaise(true);
    close->setToolTip(tr("Hide the verdict"));
    close->setAccessibleName(close->toolTip());
    connect(close, &QToolButton::clicked, this, &VerdictStrip::clear);
    auto *top = new QHBoxLayout;
    top->setSpacing(8);
    top->addWidget(m_stale, 0, Qt::AlignVCenter);
    top->addWidget(m_status, 0, Qt::AlignVCenter);
    top->addWidget(m_change, 0, Qt::AlignVCenter);
    top->addWidget(m_line, 1);
    top->addWidget(m_again);
    top->addWidget(m_more);
    top->addWidget(close);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(10, 4, 6, 4);
    layout->setSpacing(4);
    layout->addLayout(top);
    layout->addWidget(m_details);
    hide();
}

void VerdictStrip::setTrial(const gate::Trial &trial)
{
    const gate::Verdict &verdict = trial.verdict;
    m_status->setChip(chipOf(statusStyle(verdict.status)));
    Chip change;
    QString whyOpen;
    if (const gate::Comparison *comparison = trial.comparison("parent")) {
        change = chipOf(statusStyle(comparison->change));
        const gate::Interval &speedup = comparison->speedup;
        change.text += QStringLiteral(" %1 %2").arg(
            formatSpeedup(speedup.value), formatHalfWidth(speedup.value, speedup.low, speedup.high));
        whyOpen = undecidedText(trial, *comparison);
    }
    m_change->setChip(change);
    QString sentence = QString::fromStdString(verdict.message);
    if (trial.latencyNs.value > 0)
        sentence = tr("%1 on %2. %3")
                       .arg(formatLatency(trial.latencyNs.value),
                            QString::fromStdString(trial.environment.device), sentence);
    if (!whyOpen.isEmpty()) // which is not cut; the rest is among the details
        sentence = whyOpen + QLatin1Char('\n') + sentence;
    QStringList details;
    if (!verdict.hint.empty())
        details << QString::fromStdString(verdict.hint);
    details << evidenceLines(verdict);
    m_line->setWordWrap(!whyOpen.isEmpty());
    m_isTrial = true;
    m_isOpen = !whyOpen.isEmpty();
    say(sentence, details.join(QLatin1Char('\n')));
    setAccessibleName(tr("Verdict: %1. %2").arg(m_status->chip().text, sentence));
}

void VerdictStrip::setStale(bool stale)
{
    stale = stale && m_isTrial;
    m_stale->setVisible(stale);
    m_again->setVisible(m_isOpen && !stale);
    for (QWidget *said :
         {static_cast<QWidget *>(m_status), static_cast<QWidget *>(m_change), static_cast<QWidget *>(m_line)})
        said->setEnabled(!stale);
}

void VerdictStrip::setRunning(const QString &doing, const QString &text)
{
    setSentence({doing, QStringLiteral("…"), Tone::Accent}, text);
}

void VerdictStrip::setFailure(const QString &text)
{
    setSentence({tr("not gated"), QStringLiteral("!"), Tone::Warn}, text);
}

void VerdictStrip::setSentence(const Chip &status, const QString &text)
{
    m_status->setChip(status);
    m_change->setChip({});
    m_line->setWordWrap(true);
    m_isTrial = false;
    m_isOpen = false;
    say(text, {});
    setAccessibleName(tr("Verdict: %1. %2").arg(status.text, text));
}

void VerdictStrip::say(const QString &sentence, const QString &details)
{
    setStale(false);
    m_sentence = sentence;
    m_rest = details;
    m_more->setChecked(false);
    fit();
    show();
}

/// The sentence is said once: in the line, or with the rest, where it is whole. Of what is no verdict the first paragraph is never cut.
void VerdictStrip::fit()
{
    const QString first = m_sentence.section(QLatin1Char('\n'), 0, 0);
    const QFontMetrics metrics = m_line->fontMetrics();
    const int width = m_line->contentsRect().width();
    const QString shown = m_line->wordWrap() ? withFittingWords(first, metrics, width)
                                             : metrics.elidedText(first, Qt::ElideRight, width);
    const bool isWhole = shown == m_sentence;
    m_line->setText(m_more->isChecked() && !isWhole ? QString() : shown);
    m_line->setAccessibleName(m_sentence);
    m_line->setToolTip(isWhole ? QString() : m_sentence);
    m_more->setVisible(!isWhole || !m_rest.isEmpty());
    QStringList details;
    if (!isWhole)
        details << m_sentence;
    if (!m_rest.isEmpty())
        details << m_rest;
    const QString text = details.join(QLatin1Char('\n'));
    if (m_details->toPlainText() != text)
        m_details->setPlainText(text);
}

bool VerdictStrip::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_line && (event->type() == QEvent::Resize || event->type() == QEvent::FontChange))
        fit();
    return QFrame::eventFilter(watched, event);
}

void VerdictStrip::clear()
{
    hide();
}

} // namespace klineage::ui
