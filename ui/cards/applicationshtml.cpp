// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/applicationshtml.h"

#include "ui/cards/cardmarkup.h"
#include "ui/style/format.h"

#include <QStringList>

#include <algorithm>

namespace klineage::ui {

namespace {

using markup::coloured;
using markup::escaped;
using markup::label;
using markup::paragraph;
using markup::tr;

constexpr std::size_t mostListed = 12; // of the candidates below the table

QString dimText(const QString &html)
{
    return coloured(html, Theme::current().dim);
}

/// Only what there is: a card's page is narrow.
QString platformLine(const run::PlatformRecord &record)
{
    const Theme &theme = Theme::current();
    QStringList parts{
        QStringLiteral("<b>%1</b>").arg(escaped(record.platform)), tr("shown %1").arg(record.shown),
        record.together > 0 ? tr("applied %1 (%2 with others)").arg(record.applied).arg(record.together)
                            : tr("applied %1").arg(record.applied)};
    const auto add = [&](int count, const QString &text, const QColor &color) {
        if (count > 0)
            parts << coloured(text.arg(count), color);
    };
    add(record.gained, tr("▲ gained %1"), theme.good);
    add(record.noGain, tr("= no gain %1"), theme.warn);
    add(record.lost, tr("▼ lost %1"), theme.bad);
    add(record.undecided, tr("? undecided %1"), theme.warn);
    add(record.wrong, tr("✗ wrong %1"), theme.bad);
    const run::MedianFactor &factor = record.factor;
    if (factor.count > 0)
        parts << tr("median gain <b>%1</b> (%2–%3) of %4")
                     .arg(formatSpeedup(factor.median), formatSpeedup(factor.low), formatSpeedup(factor.high))
                     .arg(factor.count);
    return paragraph(parts.join(QStringLiteral(" · ")));
}

/// What the numbers are, as far as they are there.
QString footnote(const run::CardApplications &card)
{
    const auto has = [&](const auto &test) {
        return std::any_of(card.platforms.begin(), card.platforms.end(), test);
    };
    QStringList parts{
        tr("Shown: questions that had it. Applied: candidates that were asked to apply it and were gated.")};
    if (has([](const run::PlatformRecord &record) { return record.factor.count > 0; }))
        parts << tr("Gains are paired, of correct candidates that applied it alone.");
    if (has([](const run::PlatformRecord &record) { return record.factor.isSpan; }))
        parts << tr("Of two to five, the range is that of all their 95 % intervals.");
    return QStringLiteral("<p style='margin:3px 0 3px 0'>%1</p>").arg(dimText(parts.join(QLatin1Char(' '))));
}

QString outcomeWord(run::CardOutcome outcome)
{
    const Theme &theme = Theme::current();
    switch (outcome) {
    case run::CardOutcome::Gained:
        return coloured(tr("▲ gained"), theme.good);
    case run::CardOutcome::NoGain:
        return coloured(tr("= no gain"), theme.warn);
    case run::CardOutcome::Lost:
        return coloured(tr("▼ lost"), theme.bad);
    case run::CardOutcome::Undecided:
        return coloured(tr("? undecided"), theme.warn);
    case run::CardOutcome::Wrong:
        break;
    }
    return coloured(tr("✗ wrong"), theme.bad);
}

QString applicationLine(const run::Application &application)
{
    QStringList parts{QStringLiteral("<a href='cite:trial:%1' style='text-decoration:none; color:%2'>%3</a>")
                          .arg(escaped(application.trial), Theme::current().accent.name(),
                               escaped(application.workload + "/" + application.platform)),
                      outcomeWord(application.outcome)};
    if (application.outcome == run::CardOutcome::Wrong)
        parts << escaped(application.status);
    if (application.factor)
        parts << tr("<b>%1</b> (%2–%3)")
                     .arg(formatSpeedup(application.factor->value), formatSpeedup(application.factor->low),
                          formatSpeedup(application.factor->high));
    if (application.cards > 1)
        parts << dimText(tr("with %1 others").arg(application.cards - 1));
    parts << dimText(application.run.empty() ? escaped(application.action)
                                             : escaped(application.action + " in " + application.run));
    return QStringLiteral("<p style='margin:0 0 3px 12px'>%1</p>").arg(parts.join(QStringLiteral(" · ")));
}

} // namespace

QString applicationsHtml(const std::string &card, const run::ApplicationRecord *record)
{
    QString html = label(tr("Record of applications"));
    if (!record)
        return html + paragraph(dimText(tr("Counting in the runs of this workspace…")));
    const run::CardApplications *found = record->find(card);
    if (!found || found->platforms.empty())
        html += paragraph(
            record->runs == 0
                ? tr("This workspace has no runs, and no roundtrip of it is recorded.")
                : tr("None of the %1 runs of this workspace has shown or applied it.").arg(record->runs));
    else {
        for (const run::PlatformRecord &platform : found->platforms)
            html += platformLine(platform);
        html += footnote(*found);
        const auto &all = found->applications;
        const std::size_t shown = std::min(all.size(), mostListed);
        for (std::size_t i = 0; i < shown; ++i)
            html += applicationLine(all[all.size() - 1 - i]);
        if (shown < all.size())
            html += paragraph(dimText(tr("… and %1 more: klineage-cli card show %2 --json")
                                          .arg(all.size() - shown)
                                          .arg(escaped(card))));
    }
    if (!record->problems.empty())
        html += paragraph(coloured(tr("%1 runs could not be read: %2")
                                       .arg(record->problems.size())
                                       .arg(escaped(record->problems.front().message)),
                                   Theme::current().warn));
    return html;
}

} // namespace klineage::ui
