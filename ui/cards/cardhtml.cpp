// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardhtml.h"

#include "core/skills/retrieval.h"
#include "ui/cards/applicationshtml.h"
#include "ui/cards/cardmarkup.h"
#include "ui/cards/evidence.h"
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

QString citations(const std::vector<skills::Citation> &evidence)
{
    QStringList links;
    for (const skills::Citation &citation : evidence)
        links << QStringLiteral("<a href='cite:%1' style='text-decoration:none; color:%2'>%1</a>")
                     .arg(escaped(citation), Theme::current().accent.name());
    return links.isEmpty() ? QString()
                           : QStringLiteral(" <span style='font-size:small'>[%1]</span>")
                                 .arg(links.join(QStringLiteral(", ")));
}

/// Claimed against recorded: ✓ where a gain that the claim names is the one that was measured, ≠ where none is.
QString comparison(const gate::Interval &recorded, const std::vector<ClaimedGain> &gains)
{
    if (gains.empty())
        return {};
    const auto borne = std::find_if(gains.begin(), gains.end(),
                                    [&](const ClaimedGain &gain) { return bearsOut(recorded, gain); });
    const Theme &theme = Theme::current();
    return QLatin1Char(' ')
           + (borne != gains.end()
                  ? coloured(tr("✓ claimed %1").arg(borne->text.toHtmlEscaped()), theme.good)
                  : coloured(tr("≠ claimed %1").arg(gains.front().text.toHtmlEscaped()), theme.warn));
}

/// A citation with what was recorded there: figure, interval, device.
QString evidenceLine(const Workspace &workspace, const skills::Citation &citation,
                     const std::vector<ClaimedGain> &gains)
{
    const Theme &theme = Theme::current();
    const RecordedEvidence evidence = recordedEvidence(workspace, citation);
    if (!evidence.exists)
        return paragraph(coloured(tr("✗ %1 is not in this workspace.").arg(escaped(citation)), theme.bad));
    QStringList parts{QStringLiteral("<a href='cite:%1' style='text-decoration:none; color:%2'>%3</a>")
                          .arg(escaped(citation), theme.accent.name(), evidence.what.toHtmlEscaped())};
    if (evidence.speedup) {
        const gate::Interval &speedup = *evidence.speedup;
        parts << tr("<b>%1</b> (%2–%3), paired")
                         .arg(formatSpeedup(speedup.value), formatSpeedup(speedup.low),
                              formatSpeedup(speedup.high))
                     + comparison(speedup, gains);
    }
    if (!evidence.isCorrect && !evidence.verdict.isEmpty())
        parts << coloured(evidence.verdict.toHtmlEscaped(), theme.bad);
    for (const QString &part : {evidence.reference, evidence.latency, evidence.device, evidence.note}) {
        if (!part.isEmpty())
            parts << coloured(part.toHtmlEscaped(), theme.dim);
    }
    if (evidence.verdict.isEmpty())
        parts << coloured(tr("no trial is recorded for it"), theme.warn);
    return QStringLiteral("<p style='margin:0 0 4px 12px'>%1</p>").arg(parts.join(QStringLiteral(" · ")));
}

QString measured(const skills::Measured &value)
{
    return tr(" <b>%1</b> (%2–%3) against %4")
        .arg(formatSpeedup(value.factor), formatSpeedup(value.low), formatSpeedup(value.high),
             value.against == "parent" ? tr("its parent") : escaped(value.against));
}

QString claim(const skills::Claim &value)
{
    return paragraph(
        escaped(value.text)
        + (value.when.empty() ? QString() : tr(" When <code>%1</code>.").arg(escaped(value.when)))
        + (value.measured ? measured(*value.measured) : QString()) + citations(value.evidence));
}

QString standingWord(const skills::Card &card, const skills::Claim &risk)
{
    switch (skills::standingOf(card, risk)) {
    case skills::RiskStanding::Probed:
        return tr("probed");
    case skills::RiskStanding::Refuted:
        return tr("refuted");
    case skills::RiskStanding::Believed:
        return tr("believed");
    }
    return {};
}

/// What each rests on stands before it: a belief is none of the evidence's.
QString risks(const skills::Card &card)
{
    QString html = label(tr("Risk"));
    if (card.risks.empty())
        return html + paragraph(QStringLiteral("–"));
    for (const skills::Claim &risk : card.risks) {
        html += paragraph(coloured(standingWord(card, risk), Theme::current().dim) + QStringLiteral(" · ")
                          + escaped(risk.text) + citations(risk.evidence));
    }
    return html;
}

QString claims(const QString &title, const std::vector<skills::Claim> &values)
{
    QString html = label(title);
    if (values.empty())
        return html + paragraph(QStringLiteral("–"));
    for (const skills::Claim &value : values)
        html += claim(value);
    return html;
}

QString words(const std::vector<std::string> &values)
{
    QStringList list;
    for (const std::string &value : values)
        list << escaped(value);
    return list.isEmpty() ? QStringLiteral("–") : list.join(QStringLiteral(", "));
}

QString needs(const skills::Capability &capability)
{
    QStringList lines;
    if (!capability.features.empty())
        lines << tr("device: %1").arg(words(capability.features));
    if (!capability.dtypes.empty())
        lines << tr("an input of type %1").arg(words(capability.dtypes));
    if (!capability.families.empty())
        lines << tr("an operator of the family %1").arg(words(capability.families));
    return lines.isEmpty() ? QString() : label(tr("Needs")) + paragraph(lines.join(QStringLiteral("<br>")));
}

QString parameters(const std::vector<skills::Parameter> &values)
{
    QString html = values.empty() ? QString() : label(tr("Parameters"));
    for (const skills::Parameter &parameter : values) {
        QString text =
            tr("<b>%1</b>, by default %2: %3")
                .arg(escaped(parameter.name), QString::number(parameter.preset), escaped(parameter.text));
        for (const skills::TriedValue &tried : parameter.tried)
            text += QStringLiteral("<br>") + QString::number(tried.value) + QLatin1Char(':')
                    + measured(tried.measured);
        html += paragraph(text);
    }
    return html;
}

QString features(const QString &title, const std::vector<skills::Feature> &values)
{
    QStringList list;
    for (const skills::Feature &feature : values)
        list << tr("%1 at %2").arg(escaped(feature.name), escaped(feature.locus));
    return label(title) + paragraph(list.isEmpty() ? QStringLiteral("–") : list.join(QStringLiteral("<br>")));
}

QString verdictWord(skills::ReviewVerdict verdict)
{
    switch (verdict) {
    case skills::ReviewVerdict::Approve:
        return tr("✓ approved");
    case skills::ReviewVerdict::Reject:
        return tr("✗ rejected");
    case skills::ReviewVerdict::NeedsEvidence:
        return tr("? needs evidence");
    case skills::ReviewVerdict::Edit:
        return tr("✎ edited");
    case skills::ReviewVerdict::Revert:
        return tr("↶ undone");
    case skills::ReviewVerdict::Comment:
        return tr("“ ” comment");
    }
    return {};
}

/// Each risk with what it rests on: its probes, with what the gate said of them, and what it cites.
QString risksWithProbes(const skills::Card &card, const Workspace &workspace)
{
    QString html;
    for (const skills::Claim &risk : card.risks) {
        html += label(tr("Risk, %1").arg(standingWord(card, risk))) + paragraph(escaped(risk.text));
        int probes = 0;
        for (const skills::Probe &probe : card.probes) {
            if (risk.id.empty() || probe.risk != risk.id)
                continue;
            ++probes;
            html += paragraph(tr("Probe: %1 The gate said <b>%2</b>, so the risk %3.")
                                  .arg(escaped(probe.text), escaped(probe.verdict),
                                       probe.refutes ? tr("did not show") : tr("is real")))
                    + evidenceLine(workspace, "trial:" + probe.trial, {});
        }
        if (probes == 0)
            html += paragraph(
                coloured(tr("No probe: nobody has violated it on purpose (klineage-cli card probe)."),
                         Theme::current().dim));
        for (const skills::Citation &citation : risk.evidence)
            html += evidenceLine(workspace, citation, {});
    }
    return html;
}

QString scope(const QString &title, const skills::Scope &scope)
{
    return label(title)
           + paragraph(tr("cases %1 · languages %2 · platforms %3<br>after %4")
                           .arg(words(scope.cases), words(scope.languages), words(scope.platforms),
                                words(scope.priorActions)));
}

} // namespace

QString fieldsHtml(const skills::CardRecord &record)
{
    const skills::Card &card = record.card;
    return label(tr("Intent")) + claim(card.intent) + label(tr("Anchor")) + claim(card.anchor)
           + needs(card.capability) + claims(tr("Precondition"), card.preconditions)
           + (card.triggers.empty() ? QString() : claims(tr("It pays when"), card.triggers))
           + claims(tr("Effect"), card.effects) + parameters(card.parameters) + risks(card)
           + (record.life() == skills::Life::Admitted
                  ? scope(tr("Scope, verified"), skills::verifiedScope(record))
                  : QString())
           + scope(tr("Scope, claimed"), card.scope) + features(tr("Requires"), card.requirements)
           + features(tr("Provides"), card.provides) + features(tr("Conflicts with"), card.conflicts);
}

QString evidenceHtml(const skills::CardRecord &record, const Workspace &workspace)
{
    const skills::Card &card = record.card;
    QString html = label(tr("Lifted from"));
    for (const skills::Citation &citation : card.evidence)
        html += evidenceLine(workspace, citation, {});
    const auto add = [&](const QString &title, const std::vector<skills::Claim> &claims) {
        for (const skills::Claim &value : claims) {
            html += label(title) + paragraph(escaped(value.text));
            if (value.evidence.empty())
                html += paragraph(coloured(tr("! No evidence is cited."), Theme::current().warn));
            const auto gains = claimedGains(QString::fromStdString(value.text));
            for (const skills::Citation &citation : value.evidence)
                html += evidenceLine(workspace, citation, gains);
        }
    };
    add(tr("Effect"), card.effects);
    html += risksWithProbes(card, workspace);
    add(tr("Precondition"), card.preconditions);
    add(tr("Intent"), {card.intent});
    add(tr("Anchor"), {card.anchor});
    return html;
}

QString verificationHtml(const skills::CardRecord &record, const Workspace &workspace,
                         const run::ApplicationRecord *applications)
{
    const QString applied = applicationsHtml(record.card.name, applications);
    if (record.verifications.empty())
        return paragraph(tr(
                   "No roundtrip yet. The card is a hypothesis until it has been applied to a state that did not "
                   "contribute to it, and the gate has seen its effect. “Admit…” below tries it."))
               + applied;
    std::vector<ClaimedGain> gains;
    for (const skills::Claim &effect : record.card.effects) {
        for (const ClaimedGain &gain : claimedGains(QString::fromStdString(effect.text)))
            gains.push_back(gain);
    }
    QString html = applied;
    for (const skills::Verification &verification : record.verifications) {
        html += label(escaped(verification.time))
                + paragraph(tr("%1: %2, %3, %4 (revision %5)")
                                .arg(escaped(verification.target), escaped(verification.status),
                                     verification.expectedEffectObserved ? tr("effect observed")
                                                                         : tr("effect not observed"),
                                     verification.heldOut ? tr("held out") : tr("not held out"))
                                .arg(verification.cardRevision))
                + evidenceLine(workspace, "trial:" + verification.trial, {});
    }
    QStringList claimed;
    for (const ClaimedGain &gain : gains)
        claimed << gain.text.toHtmlEscaped();
    if (!claimed.isEmpty())
        html += label(tr("Claimed by its effects")) + paragraph(claimed.join(QStringLiteral(", ")));
    return html;
}

QString historyHtml(const skills::CardRecord &record)
{
    if (record.reviews.empty())
        return paragraph(
            tr("Nobody has reviewed this card yet. Approve (A), reject (X) or ask for evidence below."));
    QString html;
    if (record.card.revision > 1)
        html += paragraph(QStringLiteral("<a href='compare:' style='color:%1'>%2</a>")
                              .arg(Theme::current().accent.name(), tr("Compare revisions… (D)")));
    for (auto review = record.reviews.rbegin(); review != record.reviews.rend(); ++review) {
        html += label(tr("%1 · %2 · revision %3")
                          .arg(escaped(review->time), escaped(review->author))
                          .arg(review->cardRevision))
                + paragraph(
                    verdictWord(review->verdict)
                    + (review->reason.empty() ? QString() : QStringLiteral(" — ") + escaped(review->reason)));
    }
    return html;
}

} // namespace klineage::ui
