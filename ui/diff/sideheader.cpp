// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/sideheader.h"

#include "ui/models/disturbancetext.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"
#include "ui/style/icons.h"
#include "ui/style/theme.h"

#include <QCoreApplication>
#include <QPainter>

#include <vector>

namespace klineage::ui {

namespace {

constexpr int margin = 10;
constexpr int gap = 8;
constexpr int beforeBeside = 5;
constexpr int samplesUp = 4;    // the second line is nearer to the first …
constexpr int samplesBelow = 4; // … than to the edge

QString headerText(const char *text)
{
    return QCoreApplication::translate("SideHeader", text);
}

Chip parentChip(const gate::Comparison &comparison)
{
    Chip chip = chipOf(statusStyle(comparison.change));
    const gate::Interval &speedup = comparison.speedup;
    chip.text = QStringLiteral("%1 %2 %3")
                    .arg(chip.text, formatSpeedup(speedup.value),
                         formatHalfWidth(speedup.value, speedup.low, speedup.high));
    return chip;
}

/// Medians of two trials that were not paired: no interval, and never "gain" or "loss".
Chip baselineChip(const gate::Trial &trial, const gate::Trial &baseline, const QString &label)
{
    Chip chip;
    if (trial.latencyNs.value > 0 && baseline.latencyNs.value > 0
        && trial.environment.device == baseline.environment.device)
        chip.text = headerText("≈ %1 to %2, not paired")
                        .arg(formatSpeedup(baseline.latencyNs.value / trial.latencyNs.value), label);
    return chip;
}

QString detailOf(const gate::Trial &trial)
{
    QStringList lines{QString::fromStdString(trial.verdict.message)};
    if (!trial.verdict.hint.empty())
        lines << QString::fromStdString(trial.verdict.hint);
    if (trial.latencyNs.value > 0)
        lines << headerText("Median %1, 95 % interval %2 to %3")
                     .arg(formatLatency(trial.latencyNs.value), formatLatency(trial.latencyNs.low),
                          formatLatency(trial.latencyNs.high));
    for (const gate::Disturbance &disturbance : gate::disturbancesOf(trial))
        lines << disturbanceInWords(disturbance);
    lines << headerText("%1, %2").arg(QString::fromStdString(trial.environment.device),
                                      QString::fromStdString(trial.time));
    lines.removeAll(QString());
    return lines.join(u'\n');
}

} // namespace

SideHeading sideHeading(const lineage::RowRef &row, const lineage::RowRef *against)
{
    SideHeading heading;
    heading.label = rowLabel(row);
    heading.title = QString::fromStdString(row.title);
    if (!row.trial) {
        heading.status = {headerText("not gated"), QStringLiteral("○"), Tone::Neutral};
        heading.detail = headerText("%1 has no recorded trial.").arg(heading.label);
        return heading;
    }
    const gate::Trial &trial = *row.trial;
    heading.status = chipOf(statusStyle(trial.verdict.status));
    heading.detail = detailOf(trial);
    if (trial.latencyNs.value > 0)
        heading.latency = formatLatency(trial.latencyNs.value);
    if (!against)
        return heading;
    const gate::Comparison *comparison = trial.comparison("parent");
    if (against->id == row.parent && comparison)
        heading.change = parentChip(*comparison);
    else if (against->trial)
        heading.change = baselineChip(trial, *against->trial, rowLabel(*against));
    return heading;
}

SideHeading leftHeading(const lineage::RowRef &left, const lineage::RowRef &right)
{
    SideHeading heading = sideHeading(left, nullptr);
    const gate::Comparison *paired =
        right.trial && left.id == right.parent ? right.trial->comparison("parent") : nullptr;
    if (!paired || paired->otherNs <= 0)
        return heading;
    const QString own = heading.latency;
    heading.latency = formatLatency(paired->otherNs);
    heading.beside = headerText("beside %1").arg(rowLabel(right));
    QStringList lines{heading.detail, headerText("%1 is what it took in the trial of %2, in the same rounds")
                                          .arg(heading.latency, rowLabel(right))};
    if (!own.isEmpty())
        lines.back() += headerText("; in its own trial %1").arg(own);
    heading.detail = lines.join(u'\n');
    return heading;
}

SideHeader::SideHeader(QWidget *parent)
    : QWidget(parent)
{
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void SideHeader::setHeading(const SideHeading &heading)
{
    if (m_heading == heading)
        return;
    m_heading = heading;
    QStringList tips{heading.detail, heading.samples};
    tips.removeAll(QString());
    setToolTip(tips.join(u'\n'));
    QStringList words{heading.label,
                      heading.title,
                      heading.status.text,
                      heading.change.text,
                      heading.beside.isEmpty() ? heading.latency
                                               : heading.latency + QLatin1Char(' ') + heading.beside,
                      heading.samples};
    words.removeAll(QString());
    setAccessibleName(words.join(QStringLiteral(", ")));
    updateGeometry();
    update();
}

/// Of what stands there always.
int SideHeader::lineHeight() const
{
    return fontMetrics().height() + 14;
}

QSize SideHeader::sizeHint() const
{
    const int more = m_heading.samples.isEmpty() ? 0 : QFontMetrics(captionFont()).height() + samplesBelow;
    return {200, lineHeight() + more};
}

QSize SideHeader::minimumSizeHint() const
{
    return {80, sizeHint().height()};
}

void SideHeader::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    const Theme &theme = Theme::current();
    painter.fillRect(rect(), theme.panel);
    painter.fillRect(QRect(0, height() - 1, width(), 1), theme.border);
    QRect area = rect().adjusted(margin, 0, -margin, -1);
    if (!m_heading.samples.isEmpty()) {
        painter.setFont(captionFont());
        painter.setPen(theme.dim);
        const QRect line = area.adjusted(0, lineHeight() - samplesUp, 0, -samplesBelow);
        painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(m_heading.samples, Qt::ElideRight, line.width()));
        area.setHeight(lineHeight() - 1);
    }

    // From the outside in: the latency never gives way, then what it was timed beside, the label, the chips, and the title takes what
    // is left.
    painter.setFont(font());
    painter.setPen(theme.dim);
    const int latencyWidth = fontMetrics().horizontalAdvance(m_heading.latency);
    const int besideWidth = fontMetrics().horizontalAdvance(m_heading.beside);
    const int labelWidth = QFontMetrics(strongFont()).horizontalAdvance(m_heading.label);
    if (besideWidth > 0 && labelWidth + gap + latencyWidth + beforeBeside + besideWidth <= area.width()) {
        painter.drawText(area, Qt::AlignRight | Qt::AlignVCenter, m_heading.beside);
        area.setRight(area.right() - besideWidth - beforeBeside);
    }
    painter.setPen(theme.text);
    painter.drawText(area, Qt::AlignRight | Qt::AlignVCenter, m_heading.latency);
    if (!m_heading.latency.isEmpty())
        area.setRight(area.right() - latencyWidth - gap);
    if (m_heading.pinned) {
        const int size = fontMetrics().height();
        icon(QStringLiteral("pin"))
            .paint(&painter, QRect(area.left(), area.center().y() - size / 2, size, size));
        area.setLeft(area.left() + size + 4);
    }
    const QFont strong = strongFont();
    painter.setFont(strong);
    painter.drawText(area, Qt::AlignLeft | Qt::AlignVCenter, m_heading.label);
    area.setLeft(area.left() + QFontMetrics(strong).horizontalAdvance(m_heading.label) + gap);

    // How sure a change is goes before it is cut: the tool tip and the profile have it.
    Chip change = m_heading.change;
    if (chipSize(change, captionFont()).width() > area.width())
        change.text = change.text.section(QStringLiteral(" ±"), 0, 0);
    std::vector<const Chip *> shown;
    int chips = 0;
    for (const Chip *chip :
         {static_cast<const Chip *>(&m_heading.status), static_cast<const Chip *>(&change)}) {
        if (chip->text.isEmpty())
            continue;
        shown.push_back(chip);
        chips += chipSize(*chip, captionFont()).width() + 6;
    }
    // What was compared is correct: the change says both where there is room for one. Half a word says nothing.
    if (chips > area.width() && m_heading.status.tone == Tone::Good && !shown.empty()
        && shown.front() == &m_heading.status) {
        chips -= chipSize(*shown.front(), captionFont()).width() + 6;
        shown.erase(shown.begin());
    }
    painter.setFont(font());
    painter.setPen(theme.dim);
    const int room = area.width() - chips;
    if (room > 40) {
        const QString title = fontMetrics().elidedText(m_heading.title, Qt::ElideRight, room);
        painter.drawText(area, Qt::AlignLeft | Qt::AlignVCenter, title);
        area.setLeft(area.left() + fontMetrics().horizontalAdvance(title) + gap);
    }
    for (const Chip *chip : shown) {
        if (area.width() < 30)
            continue;
        painter.save();
        painter.setClipRect(area);
        const QRect taken = paintChip(&painter, area, *chip, captionFont());
        painter.restore();
        area.setLeft(taken.right() + 6);
    }
}

} // namespace klineage::ui
