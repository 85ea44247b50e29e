// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardhtml.h"

#include "core/skills/retrieval.h"

#include "ui/style/theme.h"

#include <QCoreApplication>
#include <QStringList>

#include <set>

namespace klineage::ui {

namespace {

QString tr(const char *text)
{
    return QCoreApplication::translate("Card", text);
}

QString escaped(const std::string &text)
{
    return QString::fromStdString(text).toHtmlEscaped().replace(QLatin1Char('\n'), QStringLiteral("<br>"));
}

QString label(const QString &text)
{
    return QStringLiteral("<p style='margin:10px 0 1px 0; color:%1; font-size:small'>%2</p>")
        .arg(Theme::current().dim.name(), text.toHtmlEscaped());
}

QString paragraph(const QString &html)
{
    return QStringLiteral("<p style='margin:0 0 3px 0'>%1</p>").arg(html);
}

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

QString claim(const skills::Claim &value)
{
    return paragraph(escaped(value.text) + citations(value.evidence));
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
    }
    return {};
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
           + claims(tr("Precondition"), card.preconditions) + claims(tr("Effect"), card.effects)
           + claims(tr("Risk"), card.risks)
           + (record.life() == skills::Life::Admitted
                  ? scope(tr("Scope, verified"), skills::verifiedScope(record))
                  : QString())
           + scope(tr("Scope, claimed"), card.scope) + features(tr("Requires"), card.requirements)
           + features(tr("Provides"), card.provides) + features(tr("Conflicts with"), card.conflicts);
}

QString evidenceHtml(const skills::CardRecord &record)
{
    const skills::Card &card = record.card;
    QString html = label(tr("Lifted from")) + paragraph(citations(card.evidence));
    std::set<skills::Citation> cited;
    const auto collect = [&](const std::vector<skills::Claim> &list) {
        for (const skills::Claim &value : list)
            cited.insert(value.evidence.begin(), value.evidence.end());
    };
    collect({card.intent, card.anchor});
    collect(card.preconditions);
    collect(card.effects);
    collect(card.risks);
    html += label(tr("Cited by its fields"))
            + paragraph(citations(std::vector<skills::Citation>(cited.begin(), cited.end())));
    return html;
}

QString verificationHtml(const skills::CardRecord &record)
{
    if (record.verifications.empty())
        return paragraph(
            tr("No roundtrip yet. The card is a hypothesis until it has been applied to a state that did not "
               "contribute to it, and the gate has seen its effect."));
    QString html;
    for (const skills::Verification &verification : record.verifications) {
        html += label(escaped(verification.time))
                + paragraph(tr("%1: %2, %3, %4 (revision %5)%6")
                                .arg(escaped(verification.target), escaped(verification.status),
                                     verification.expectedEffectObserved ? tr("effect observed")
                                                                         : tr("effect not observed"),
                                     verification.heldOut ? tr("held out") : tr("not held out"))
                                .arg(verification.cardRevision)
                                .arg(citations({"trial:" + verification.trial})));
    }
    return html;
}

QString historyHtml(const skills::CardRecord &record)
{
    if (record.reviews.empty())
        return paragraph(
            tr("Nobody has reviewed this card yet. Approve (A), reject (X) or ask for evidence below."));
    QString html;
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
