// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/options.h"
#include "app/version/version.h"

#include "core/kernel/surfaces/surface.h"
#include "ui/shell/docks/layouts.h"
#include "ui/story/storypanel.h"

#include <QCommandLineParser>
#include <QCoreApplication>
#include <QFileInfo>
#include <QRegularExpression>

#include <utility>

namespace klineage::app {

namespace {

QString optionText(const char *text)
{
    return QCoreApplication::translate("klineage::app", text);
}

/// Checks one value; the first thing that is wrong becomes the message.
class Checker
{
public:
    explicit Checker(Options &options)
        : m_options(options)
    {}

    void expect(bool holds, const QString &message)
    {
        if (holds || m_options.exitCode != 0)
            return;
        m_options.message = message + QLatin1Char('\n');
        m_options.exitCode = 2;
    }

private:
    Options &m_options;
};

QStringList layoutIds()
{
    QStringList ids;
    for (const ui::WindowLayout &layout : ui::windowLayouts())
        ids << layout.id;
    return ids;
}

QString description()
{
    return optionText("The workbench for kernel lineages and SkillCards.");
}

/// But help and version, which the parser has by itself.
QList<QCommandLineOption> knownOptions()
{
    return {
        {"workspace",
         optionText(
             "Open this workspace: a folder with workloads/ and skills/. Without it the nearest one above, the last "
             "one, or the installed example."),
         optionText("DIR")},
        {"screenshot", optionText("Write a picture of the window to FILE and exit. Needs no display."),
         optionText("FILE")},
        {"report",
         optionText(
             "Write the report of a lineage, a run or an experiment and exit, as klineage-cli report. Needs no display."),
         optionText("NAME")},
        {"output", optionText("The report's file, .html, .pdf or .md."), optionText("FILE")},
        {"size", optionText("Size of the window."), optionText("WxH")},
        {"theme", optionText("light, dark or system."), optionText("NAME")},
        {"scale", optionText("Scale of the window, 0.5 to 4."), optionText("FACTOR")},
        {"layout", optionText("Layout of the window: %1.").arg(layoutIds().join(QStringLiteral(", "))),
         optionText("NAME")},
        {"story",
         optionText("Show a picture of the story: %1.")
             .arg(ui::StoryPanel::viewNames().join(QStringLiteral(", "))),
         optionText("NAME")},
        {"open",
         optionText(
             "Go to a lineage, one of its states, a run or an experiment: gemm/sm90/K05, run:ID, experiment:NAME. A .cu or "
             ".cl file begins a new lineage from it."),
         optionText("TARGET")},
        {"card", optionText("Show this SkillCard."), optionText("NAME")},
    };
}

void readValues(const QCommandLineParser &parser, Options &options)
{
    Checker checker(options);
    options.workspace = parser.value("workspace");
    options.screenshot = parser.value("screenshot");
    options.report = parser.value("report");
    options.output = parser.value("output");
    options.open = parser.value("open");
    if (kernel::surfaceOfFile(options.open.toStdString()))
        options.kernel = std::exchange(options.open, {});
    options.card = parser.value("card");
    options.theme = parser.value("theme");
    options.layout = parser.value("layout");
    options.story = parser.value("story");
    checker.expect(parser.isSet("report") == parser.isSet("output"),
                   optionText("--report NAME and --output FILE belong together."));
    if (parser.isSet("size")) {
        const auto match = QRegularExpression("^(\\d{2,5})x(\\d{2,5})$").match(parser.value("size"));
        options.size = QSize(match.captured(1).toInt(), match.captured(2).toInt());
        checker.expect(match.hasMatch() && options.size.width() >= 320 && options.size.height() >= 240
                           && options.size.width() <= 16000 && options.size.height() <= 16000,
                       optionText("--size %1: expected WIDTHxHEIGHT, from 320x240 to 16000x16000.")
                           .arg(parser.value("size")));
    }
    if (parser.isSet("scale")) {
        options.scale = parser.value("scale").toDouble();
        checker.expect(options.scale >= 0.5 && options.scale <= 4,
                       optionText("--scale %1: expected a number from 0.5 to 4.").arg(parser.value("scale")));
    }
    if (parser.isSet("theme"))
        checker.expect(QStringList({"light", "dark", "system"}).contains(options.theme),
                       optionText("--theme %1: expected light, dark or system.").arg(options.theme));
    if (parser.isSet("layout"))
        checker.expect(ui::findLayout(options.layout) >= 0,
                       optionText("--layout %1: expected one of %2.")
                           .arg(options.layout, layoutIds().join(QStringLiteral(", "))));
    if (parser.isSet("story"))
        checker.expect(ui::StoryPanel::viewNames().contains(options.story),
                       optionText("--story %1: expected one of %2.")
                           .arg(options.story, ui::StoryPanel::viewNames().join(QStringLiteral(", "))));
    if (!options.kernel.isEmpty())
        checker.expect(QFileInfo(options.kernel).isFile(),
                       optionText("--open %1: there is no such file.").arg(options.kernel));
    else if (parser.isSet("open"))
        checker.expect(
            options.open.startsWith(QLatin1String("run:"))
                || options.open.startsWith(QLatin1String("experiment:"))
                || (options.open.count(QLatin1Char('/')) >= 1 && options.open.count(QLatin1Char('/')) <= 2),
            optionText(
                "--open %1: expected WORKLOAD/PLATFORM or WORKLOAD/PLATFORM/STATE, such as gemm/sm90/K05, "
                "run:ID, experiment:NAME, or a .cu or .cl file.")
                .arg(options.open));
}

} // namespace

Options parseOptions(const QStringList &arguments)
{
    QCommandLineParser parser;
    parser.setApplicationDescription(description());
    const QCommandLineOption help = parser.addHelpOption();
    const QCommandLineOption version = parser.addVersionOption();
    parser.addOptions(knownOptions());
    Options options;
    if (!parser.parse(arguments)) {
        options.message = parser.errorText() + QLatin1Char('\n')
                          + optionText("klineage --help lists the options.") + QLatin1Char('\n');
        options.exitCode = 2;
    } else if (parser.isSet(help)) {
        options.message = parser.helpText();
    } else if (parser.isSet(version)) {
        options.message = QStringLiteral("klineage %1\n").arg(QLatin1String(versionText()));
    } else if (!parser.positionalArguments().isEmpty()) {
        options.message =
            optionText("%1: klineage takes options only; --open goes to a state, --workspace opens a folder.")
                .arg(parser.positionalArguments().first())
            + QLatin1Char('\n');
        options.exitCode = 2;
    } else {
        readValues(parser, options);
    }
    return options;
}

manual::Command commandOfWindow()
{
    manual::Command command{"klineage", description().toStdString(), {}, {}, {}, {}};
    command.notes =
        "Exit status: 0 ok; 1 what was asked for is not there; 2 wrong usage; 3 the environment failed.";
    command.options = {{{"-h", "--help"}, {}, {}, "Show the options and exit."},
                       {{"-v", "--version"}, {}, {}, "Show the version and exit."}};
    for (const QCommandLineOption &known : knownOptions()) {
        manual::Option option{{"--" + known.names().first().toStdString()},
                              known.valueName().toStdString(),
                              {},
                              known.description().toStdString()};
        if (known.names().contains(QLatin1String("theme")))
            option.choices = {"light", "dark", "system"};
        if (known.names().contains(QLatin1String("layout"))) {
            for (const QString &id : layoutIds())
                option.choices.push_back(id.toStdString());
        }
        command.options.push_back(option);
    }
    return command;
}

} // namespace klineage::app
