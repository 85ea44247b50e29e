// SPDX-License-Identifier: GPL-3.0-or-later
// klineage-bench GROUP…: measures what the window promises. Without a display it draws offscreen.
#include "bench.h"

#include "ui/style/theme.h"

#include <QApplication>

#include <algorithm>
#include <cstdio>

using namespace klineage;

namespace {

std::vector<const bench::Group *> sortedGroups()
{
    auto groups = bench::Group::all();
    std::sort(groups.begin(), groups.end(), [](const auto *a, const auto *b) { return a->name < b->name; });
    return groups;
}

int usage(std::FILE *to, int code)
{
    std::fprintf(
        to,
        "Usage: klineage-bench [--table] [--processor] [--details] GROUP... | all\n\nPrints one JSON line a figure, or a table of them; exits "
        "with 1 when one misses its goal. --processor counts processor time, for a machine that is busy with other things. "
        "--details prints what lies behind some figures: of labels, each card that came late and what the score of an earlier one "
        "has more of.\n\nGroups:\n");
    for (const bench::Group *group : sortedGroups())
        std::fprintf(to, "  %-12s %s\n", qPrintable(group->name), qPrintable(group->summary));
    return code;
}

/// The offscreen platform complains of every window that has a least size: there is no window manager that it could tell.
void sayWhatMatters(QtMsgType, const QMessageLogContext &, const QString &message)
{
    if (!message.contains(QLatin1String("propagateSizeHints")))
        std::fprintf(stderr, "%s\n", qPrintable(message));
}

} // namespace

int main(int argc, char **argv)
{
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    qInstallMessageHandler(sayWhatMatters);
    QApplication application(argc, argv);
    QStringList names = QApplication::arguments().mid(1);
    if (names.removeAll(QStringLiteral("--processor")) > 0)
        bench::setClock(bench::Clock::Processor);
    const bool withDetails = names.removeAll(QStringLiteral("--details")) > 0;
    const bool isTable = names.removeAll(QStringLiteral("--table")) > 0;
    if (names.isEmpty())
        return usage(stderr, 2);
    if (names.contains(QStringLiteral("--help")) || names.contains(QStringLiteral("-h")))
        return usage(stdout, 0);

    std::vector<const bench::Group *> chosen;
    for (const QString &name : names) {
        const auto groups = sortedGroups();
        const auto found = std::find_if(groups.begin(), groups.end(),
                                        [&](const auto *group) { return group->name == name; });
        if (name == QLatin1String("all")) {
            chosen = groups;
            std::erase_if(chosen, [](const bench::Group *group) { return group->isPartOfAnother; });
        } else if (found == groups.end()) {
            std::fprintf(stderr, "There is no group %s.\n\n", qPrintable(name));
            return usage(stderr, 2);
        } else {
            chosen.push_back(*found);
        }
    }
    ui::Theme::apply(application, ui::ThemeChoice::Light);
    bench::Reporter reporter(isTable ? bench::Reporter::Form::Table : bench::Reporter::Form::Json,
                             withDetails);
    for (const bench::Group *group : chosen)
        group->run(reporter);
    return reporter.failures() > 0 ? 1 : 0;
}
