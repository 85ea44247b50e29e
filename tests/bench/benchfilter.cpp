// SPDX-License-Identifier: GPL-3.0-or-later
// A keystroke in the library's filter over 10,000 cards: from the key to the painted list.
#include "bench.h"
#include "tests/paths.h"
#include "uirows.h"

#include "ui/library/facetbar.h"
#include "ui/library/librarypanel.h"
#include "ui/models/libraryfilter.h"
#include "ui/models/librarymodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QKeyEvent>
#include <QLineEdit>

#include <algorithm>
#include <array>

namespace klineage::bench {

namespace {

constexpr double goalMs = 16;

} // namespace

skills::CardRecord syntheticCard(int i)
{
    constexpr std::array categories{"tiling", "vectorization", "prefetch", "swizzling", "work_distribution"};
    constexpr std::array platforms{"sm90", "sm80", "pocl", "sm120"};
    constexpr std::array families{"contraction", "reduction", "attention", "scan"};
    constexpr std::array authors{"lift", "gate", "probe"};
    const auto of = [i](const auto &words, int step) {
        return words[static_cast<std::size_t>(i / step) % words.size()];
    };
    skills::CardRecord record;
    skills::Card &card = record.card;
    card.name = "synthetic-" + std::string(of(categories, 1)) + '-' + std::to_string(i);
    std::replace(card.name.begin(), card.name.end(), '_', '-');
    card.category = of(categories, 1);
    card.locus = "locus " + std::to_string(i % 37) + " of the k-loop";
    card.intent = {"Do the step number " + std::to_string(i) + " in another way.", {}};
    card.scope.cases = {"workload-" + std::to_string(i % 53)};
    card.scope.platforms = {of(platforms, 3)};
    card.capability.families = {of(families, 7)};
    card.capability.features = {"warps"};
    if (i % 3 != 0) {
        skills::Review review;
        review.id = std::to_string(i);
        review.time = "2026-01-01T00:00:00.000Z";
        review.author = of(authors, 11);
        review.cardRevision = 1;
        review.verdict = i % 5 == 0 ? skills::ReviewVerdict::Approve : skills::ReviewVerdict::Comment;
        record.reviews.push_back(review);
    }
    return record;
}

namespace {

/// Each letter of the text, then each taken back: milliseconds of every key.
void typeInto(QLineEdit *field, const QString &text, std::vector<double> &samples)
{
    const auto press = [&](int key, const QString &typed) {
        samples.push_back(millisecondsOf([&] {
            QKeyEvent event(QEvent::KeyPress, key, Qt::NoModifier, typed);
            QCoreApplication::sendEvent(field, &event);
            QCoreApplication::sendPostedEvents(); // the layout, and the paint of what has changed
            QCoreApplication::processEvents();    // what the view put off
        }));
    };
    for (const QChar letter : text)
        press(0, letter);
    for (qsizetype i = 0; i < text.size(); ++i)
        press(Qt::Key_Backspace, {});
}

} // namespace

void filterKeys(Reporter &reporter)
{
    Workspace content;
    content.root = "/nowhere";
    for (int i = 0; i < cardCount; ++i)
        content.cards.push_back(syntheticCard(i));
    std::sort(content.cards.begin(), content.cards.end(),
              [](const auto &a, const auto &b) { return a.card.name < b.card.name; });
    ui::WorkspaceModel workspace;
    ui::Selection selection;
    workspace.setWorkspace(content);
    ui::LibraryPanel panel(&workspace, &selection);
    panel.resize(400, 700);
    panel.show();
    QCoreApplication::processEvents();

    const auto measure = [&](const QString &name, const QString &text, const QString &what) {
        std::vector<double> samples;
        typeInto(panel.filterField(), text, samples); // one that does not count
        samples.clear();
        for (int repeat = 0; repeat < 3; ++repeat)
            typeInto(panel.filterField(), text, samples);
        reporter.samplesAtMost(
            QStringLiteral("ui.filter.") + name, samples, QStringLiteral("ms"), goalMs,
            QStringLiteral("%1; %2 keys, %3 cards").arg(what).arg(samples.size()).arg(cardCount));
    };
    measure(QStringLiteral("words"), QStringLiteral("vectorization k-loop 77"), QStringLiteral("words"));
    measure(QStringLiteral("facets"),
            QStringLiteral("life:hypo lint:error platform:sm90 family:attention by:lift"),
            QStringLiteral("five facets"));
    measure(QStringLiteral("letters"), QStringLiteral("synvct9k"), QStringLiteral("letters apart"));
    panel.filterField()->setText(QStringLiteral("platform:sm90"));
    reporter.atMost(QStringLiteral("ui.filter.counts"),
                    medianMilliseconds(9, [&] { (void)panel.filter()->counts(Facet::Family); }),
                    QStringLiteral("ms"), goalMs, QStringLiteral("counts of one facet, as its menu opens"));
    reporter.info(QStringLiteral("ui.library.refresh"),
                  medianMilliseconds(5, [&] { workspace.setWorkspace(content); }), QStringLiteral("ms"),
                  QStringLiteral("the whole library anew, facets known"));
    if (const Result<Workspace> shipped = openWorkspace(klineage::test::sourcePath()))
        reporter.atMost(QStringLiteral("ui.library.shipped"),
                        medianMilliseconds(5, [&] { ui::LibraryModel().refresh(*shipped); }),
                        QStringLiteral("ms"), 100,
                        QStringLiteral("the shipped workspace with the facets of its %1 cards, lint included")
                            .arg(shipped->cards.size()));
}

namespace {

const Group group("filter", "a key in the library's filter over 10,000 cards", &filterKeys, true);

} // namespace

} // namespace klineage::bench
