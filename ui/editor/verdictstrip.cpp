// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/editor/verdictstrip.h"

#include "ui/style/chip.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"
#include "ui/style/icons.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

QLabel *sentence(QWidget *parent)
{
    auto *label = new QLabel(parent);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    label->setTextFormat(Qt::PlainText);
    return label;
}

void setText(QLabel *label, const QString &text)
{
    label->setText(text);
    label->setVisible(!text.isEmpty());
}

} // namespace

VerdictStrip::VerdictStrip(QWidget *parent)
    : QFrame(parent)
    , m_status(new ChipLabel(this))
    , m_change(new ChipLabel(this))
    , m_message(sentence(this))
    , m_evidence(sentence(this))
    , m_hint(sentence(this))
{
    m_evidence->setFont(codeFont());
    m_hint->setForegroundRole(QPalette::PlaceholderText);
    auto *close = new QToolButton(this);
    close->setIcon(icon(QStringLiteral("close")));
    close->setAutoRaise(true);
    close->setToolTip(tr("Hide the verdict"));
    close->setAccessibleName(close->toolTip());
    connect(close, &QToolButton::clicked, this, &VerdictStrip::clear);
    auto *top = new QHBoxLayout;
    top->setSpacing(8);
    top->addWidget(m_status, 0, Qt::AlignVCenter);
    top->addWidget(m_change, 0, Qt::AlignVCenter);
    top->addWidget(m_message, 1);
    top->addWidget(close, 0, Qt::AlignTop);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(10, 6, 6, 8);
    layout->setSpacing(4);
    layout->addLayout(top);
    layout->addWidget(m_evidence);
    layout->addWidget(m_hint);
    hide();
}

void VerdictStrip::setTrial(const gate::Trial &trial)
{
    const gate::Verdict &verdict = trial.verdict;
    m_status->setChip(chipOf(statusStyle(verdict.status)));
    Chip change;
    if (const gate::Comparison *comparison = trial.comparison("parent")) {
        change = chipOf(statusStyle(comparison->change));
        const gate::Interval &speedup = comparison->speedup;
        change.text += QStringLiteral(" %1 %2").arg(
            formatSpeedup(speedup.value), formatHalfWidth(speedup.value, speedup.low, speedup.high));
    }
    m_change->setChip(change);
    QString message = QString::fromStdString(verdict.message);
    if (trial.latencyNs.value > 0)
        message = tr("%1 (%2)").arg(message, formatLatency(trial.latencyNs.value));
    setText(m_message, message);
    QStringList evidence;
    for (const gate::Evidence &entry : verdict.evidence)
        evidence << QStringLiteral("%1 = %2").arg(QString::fromStdString(entry.name),
                                                  QString::fromStdString(entry.value));
    setText(m_evidence, evidence.join(QStringLiteral("   ")));
    setText(m_hint, QString::fromStdString(verdict.hint));
    setAccessibleName(tr("Verdict: %1. %2").arg(m_status->chip().text, message));
    show();
}

void VerdictStrip::setRunning(const QString &text)
{
    setSentence({tr("running"), QStringLiteral("…"), Tone::Accent}, text);
}

void VerdictStrip::setFailure(const QString &text)
{
    setSentence({tr("not gated"), QStringLiteral("!"), Tone::Warn}, text);
}

void VerdictStrip::setSentence(const Chip &status, const QString &text)
{
    m_status->setChip(status);
    m_change->setChip({});
    setText(m_message, text);
    setText(m_evidence, {});
    setText(m_hint, {});
    show();
}

void VerdictStrip::clear()
{
    hide();
}

} // namespace klineage::ui
