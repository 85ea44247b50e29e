// SPDX-License-Identifier: GPL-3.0-or-later
// Reading a workspace of 50 lineages and 200 cards.
#include "bench.h"
#include "uirows.h"

#include "core/skills/store.h"
#include "core/workspace/workspace.h"
#include "tests/paths.h"

#include <QDir>
#include <QTemporaryDir>

#include <filesystem>

namespace klineage::bench {

namespace {

constexpr std::size_t lineagesOnDisk = 50;
constexpr int cardsOnDisk = 200;

/// The shipped workloads, and copies of their lineages under other platform names up to the number wanted.
bool copyLineages(const std::filesystem::path &root, std::size_t count, QString *why)
{
    const std::filesystem::path source = std::filesystem::path(klineage::test::sourcePath()) / "workloads";
    try {
        std::filesystem::create_directories(root / "skills");
        std::filesystem::copy(source, root / "workloads", std::filesystem::copy_options::recursive);
        std::vector<std::filesystem::path> lineages;
        for (const auto &workload : std::filesystem::directory_iterator(root / "workloads")) {
            if (!std::filesystem::is_directory(workload.path() / "lineages"))
                continue;
            for (const auto &lineage : std::filesystem::directory_iterator(workload.path() / "lineages"))
                lineages.push_back(lineage.path());
        }
        if (lineages.empty()) {
            *why = QStringLiteral("no lineage is shipped");
            return false;
        }
        for (std::size_t i = lineages.size(); i < count; ++i) {
            const auto &original = lineages[i % lineages.size()];
            std::filesystem::copy(original, original.string() + "-" + std::to_string(i),
                                  std::filesystem::copy_options::recursive);
        }
    } catch (const std::filesystem::filesystem_error &error) {
        *why = QString::fromUtf8(error.what());
        return false;
    }
    return true;
}

bool makeCards(const std::filesystem::path &root, int count, QString *why)
{
    const skills::CardStore store(root / "skills");
    for (int i = 0; i < count; ++i) {
        skills::Card card;
        card.name = "synthetic-" + std::to_string(i);
        card.category = "tiling";
        card.locus = "k-loop operand load";
        card.intent = {"Stage reused tiles in shared memory.", {"gemm/sm90/K01"}};
        card.anchor = {"The innermost loop that reads both operands.", {"gemm/sm90/K01"}};
        card.preconditions = {{"Each element is read more than once a block.", {"gemm/sm90/K01"}}};
        card.effects = {{"Fewer bytes from device memory.", {"gemm/sm90/K01"}}};
        card.risks = {{"Bank conflicts.", {"gemm/sm90/K01"}}};
        card.scope = {{"gemm"}, {"cuda"}, {"sm90"}, {}};
        card.evidence = {"gemm/sm90/K01"};
        card.carrierFile = "carrier.cu";
        const auto made = store.create(card, "__shared__ float tile[32][33];\n");
        if (!made) {
            *why = QString::fromStdString(made.error().message);
            return false;
        }
    }
    return true;
}

} // namespace

bool makeWorkspaceOnDisk(const std::filesystem::path &root, std::size_t lineages, int cards, QString *why)
{
    return copyLineages(root, lineages, why) && makeCards(root, cards, why);
}

namespace {

void run(Reporter &reporter)
{
    const QString name = QStringLiteral("workspace.scan");
    const QTemporaryDir folder;
    const std::filesystem::path root = folder.path().toStdString();
    QString why;
    if (!makeWorkspaceOnDisk(root, lineagesOnDisk, cardsOnDisk, &why)) {
        reporter.missing(name, why);
        return;
    }
    Result<Workspace> workspace;
    const double elapsed = medianMilliseconds(5, [&] { workspace = openWorkspace(root); });
    if (!workspace) {
        reporter.missing(name, QString::fromStdString(workspace.error().message));
        return;
    }
    reporter.atMost(name, elapsed, QStringLiteral("ms"), 100,
                    QStringLiteral("%1 lineages and %2 cards on disk, warm")
                        .arg(workspace->lineages.size())
                        .arg(workspace->cards.size()));
}

const Group group("workspace", "reading 50 lineages and 200 cards", &run);

} // namespace

} // namespace klineage::bench
