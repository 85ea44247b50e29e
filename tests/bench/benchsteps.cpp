// SPDX-License-Identifier: GPL-3.0-or-later
// Steps through a lineage of 300 states in the main window, with 10,000 cards: from the key to all panels painted.
#include "bench.h"
#include "tests/paths.h"
#include "uirows.h"

#include "core/files/atomicfile.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/devicemonitor.h"
#include "ui/shell/mainwindow.h"

#include <QApplication>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <fstream>

namespace klineage::bench {

namespace {

constexpr double goalMs = 50;
constexpr int pauseMs = 150; ///< between two steps of a person who looks: neighbours are read ahead meanwhile
constexpr int samplesWanted = 60;

/// The states of a shipped lineage over and over, each with its trial and a source of its own.
std::optional<lineage::Lineage> longLineage(const Workspace &shipped, const std::string &key,
                                            const std::filesystem::path &folder)
{
    const lineage::Lineage *original = shipped.findLineage(key);
    if (!original || original->states.size() < 2)
        return std::nullopt;
    lineage::Lineage made = *original;
    made.name = "long";
    made.directory = folder;
    made.states.clear();
    made.transitions.clear();
    made.attempts.clear();
    made.branches.clear();
    made.trials.clear();
    for (int i = 0; i < stateCount; ++i) {
        const auto n = original->states.size() - 1; // K0 has no parent
        const lineage::State &like = original->states[1 + static_cast<std::size_t>(i) % n];
        const gate::Trial *trial = original->trialOf(like);
        const Result<std::string> text = files::readFile((original->directory / like.file).string(), 1 << 24);
        const lineage::Transition *step = original->transitionTo(like.id);
        if (!trial || !text || !step)
            return std::nullopt;
        const std::string id = QStringLiteral("K%1").arg(i, 3, 10, QLatin1Char('0')).toStdString();
        const lineage::State state{id, id + ".cu", like.title, "t" + id};
        std::ofstream(folder / state.file) << *text << "// state " << i << '\n';
        made.trials.push_back(*trial);
        made.trials.back().id = state.trial;
        if (!made.states.empty())
            made.transitions.push_back(
                {made.states.back().id, id, step->category, step->locus, step->summary, step->card});
        made.states.push_back(state);
    }
    return made;
}

class Walk
{
public:
    Walk(const Workspace &content, const QString &key)
    {
        m_window.resize(1600, 1000);
        m_window.show();
        m_window.workspace()->setWorkspace(content);
        m_window.selection()->setLineage(key, QStringLiteral("K150"));
        m_isReady = QTest::qWaitForWindowActive(&m_window, 30'000)
                    && QTest::qWaitFor(
                        [this] { return m_window.devices()->hasAnswer() && m_window.isSettled(); }, 30'000);
    }

    [[nodiscard]] bool isReady() const { return m_isReady; }

    /// From the key to the last paint that it causes.
    double step(Qt::Key key)
    {
        const QString before = m_window.selection()->row();
        return millisecondsOf([&] {
                   QTest::keyClick(&m_window, key, Qt::ControlModifier);
                   workUntil([this] { return m_window.isSettled(); });
                   for (int i = 0; i < 3; ++i) { // what is put off to the next round, and the paints of that
                       QApplication::sendPostedEvents();
                       QApplication::processEvents();
                   }
               })
               * (m_window.selection()->row() == before ? -1 : 1);
    }

    /// A zigzag that comes to states of all kinds; empty when a key did nothing.
    std::vector<double> steps(int pause)
    {
        std::vector<double> samples;
        for (int i = 0; i < samplesWanted; ++i) {
            QTest::qWait(pause);
            const double elapsed = step(i % 8 < 6 ? Qt::Key_Right : Qt::Key_Left);
            if (elapsed < 0)
                return {};
            samples.push_back(elapsed);
        }
        return samples;
    }

private:
    ui::MainWindow m_window;
    bool m_isReady = false;
};

} // namespace

void steps(Reporter &reporter)
{
    const QString name = QStringLiteral("step.one");
    const QTemporaryDir folder;
    Result<Workspace> content = openWorkspace(klineage::test::sourcePath());
    const auto lineage =
        content ? longLineage(*content, "gemm/sm90", folder.path().toStdString()) : std::nullopt;
    if (!lineage) {
        reporter.missing(name, QStringLiteral("the shipped lineage gemm/sm90 is not there"));
        return;
    }
    const QString key = QString::fromStdString(lineage->key());
    content->lineages.push_back(*lineage);
    for (int i = 0; i < cardCount; ++i)
        content->cards.push_back(syntheticCard(i));
    std::sort(content->cards.begin(), content->cards.end(),
              [](const auto &a, const auto &b) { return a.card.name < b.card.name; });
    Walk walk(*content, key);
    if (!walk.isReady()) {
        reporter.missing(name, QStringLiteral("the window did not come to rest"));
        return;
    }
    (void)walk.steps(0); // the first ones do not count
    const QString what =
        QStringLiteral("of %1 states, beside %2 cards: diff, profile, card, lineage and trajectory painted")
            .arg(stateCount)
            .arg(cardCount);
    const std::vector<double> single = walk.steps(pauseMs);
    const std::vector<double> held = walk.steps(0);
    if (single.empty() || held.empty()) {
        reporter.missing(name, QStringLiteral("Ctrl+Right does not step"));
        return;
    }
    reporter.samplesAtMost(name, single, QStringLiteral("ms"), goalMs, what);
    reporter.samplesAtMost(QStringLiteral("step.held"), held, QStringLiteral("ms"), goalMs,
                           QStringLiteral("the same without a pause between the keys"));
}

namespace {

const Group group("steps", "a step of a lineage of 300 states in the window", &steps, true);

} // namespace

} // namespace klineage::bench
