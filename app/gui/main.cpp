// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/options.h"
#include "app/gui/screenshot.h"
#include "app/manual/pages.h"
#include "core/workspace/installed.h"
#include "core/workspace/workspace.h"
#include "ui/models/workspacemodel.h"
#include "ui/report/reportfile.h"
#include "ui/shell/mainwindow.h"
#include "ui/style/choosefile.h"
#include "ui/style/icons.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QDir>
#include <QLibraryInfo>
#include <QLocale>
#include <QTimer>
#include <QTranslator>

#include <cstdio>
#include <ctime>

namespace {

using namespace klineage;

bool hasDisplay()
{
    return qEnvironmentVariableIsSet("QT_QPA_PLATFORM") || !qEnvironmentVariableIsEmpty("DISPLAY")
           || !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
}

/// Without a display Qt reports what its offscreen platform cannot do; that is of no interest to who makes a picture.
void sayWhatMatters(QtMsgType type, const QMessageLogContext &, const QString &message)
{
    if (type == QtDebugMsg || type == QtInfoMsg || message.contains(QLatin1String("propagateSizeHints"))
        || message.contains(QLatin1String("XDG_RUNTIME_DIR")))
        return;
    std::fprintf(stderr, "%s\n", qPrintable(message));
}

/// Milliseconds since the kernel started this process (to 10 ms), dynamic linking included.
long long processAgeMs()
{
    std::FILE *file = std::fopen("/proc/self/stat", "r");
    if (!file)
        return -1;
    char text[1024] = {};
    const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    // Field 22, in clock ticks; the name in field 2 may hold anything, so counting starts behind its bracket.
    const QByteArray line(text, static_cast<qsizetype>(size));
    const QList<QByteArray> fields = line.mid(line.lastIndexOf(')') + 2).split(' ');
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const long long startedMs = fields.value(19).toLongLong() * 1000 / 100;
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000 - startedMs;
}

/// When the window has been painted first, and when it shows all that it is to show.
void sayStartUp(ui::MainWindow *window)
{
    const auto say = [](const char *what) {
        std::printf("%s %lld ms\n", what, processAgeMs());
        std::fflush(stdout);
    };
    QObject::connect(window, &ui::MainWindow::firstPainted, window, [say] { say("first paint"); });
    auto *look = new QTimer(window);
    QObject::connect(look, &QTimer::timeout, window, [say, look, window] {
        if (!window->workspace()->isLoaded() || !window->isSettled())
            return;
        look->stop();
        say("filled");
    });
    look->start(5);
}

/// The workspace to open: asked for, else around the current folder, around the program, the last one, or the installed example.
QString chooseWorkspace(const app::Options &options, const QString &last, QString *why)
{
    if (!options.workspace.isEmpty())
        return options.workspace;
    for (const QString &start : {QDir::currentPath(), QCoreApplication::applicationDirPath()}) {
        if (const auto found = findWorkspace(start.toStdString()))
            return QString::fromStdString(found->string());
    }
    if (!last.isEmpty() && QDir(last).exists())
        return last;
    if (const auto installed = installedWorkspace())
        return QString::fromStdString(installed->string());
    *why = QCoreApplication::translate("klineage::app", "No workspace was found around %1.")
               .arg(QDir::currentPath());
    return {};
}

/// The language of the desktop, when it was compiled in (resources/i18n), and then Qt's own texts too: never half of them.
void translate(QApplication &application)
{
    auto *own = new QTranslator(&application);
    if (!own->load(QLocale(), QStringLiteral("klineage"), QStringLiteral("_"), QStringLiteral(":/i18n")))
        return;
    application.installTranslator(own);
    auto *ofQt = new QTranslator(&application);
    if (ofQt->load(QLocale(), QStringLiteral("qtbase"), QStringLiteral("_"),
                   QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
        application.installTranslator(ofQt);
}

int writeReport(const app::Options &options)
{
    QString problem;
    const QString root = chooseWorkspace(options, {}, &problem);
    if (!root.isEmpty()) {
        const Result<Workspace> workspace = openWorkspace(root.toStdString());
        problem = workspace ? ui::writeReportFile(*workspace, options.report.toStdString(), options.output)
                            : QString::fromStdString(workspace.error().message);
    }
    if (!problem.isEmpty())
        std::fprintf(stderr, "%s\n", qPrintable(problem));
    return problem.isEmpty() ? 0 : 3;
}

} // namespace

int main(int argc, char *argv[])
{
    QStringList arguments;
    for (int i = 0; i < argc; ++i)
        arguments << QString::fromLocal8Bit(argv[i]);
    QCoreApplication::setApplicationName(QStringLiteral("klineage"));
    if (const auto status = manual::generateIfAsked(argc, argv, app::commandOfWindow))
        return *status;
    const app::Options options = app::parseOptions(arguments);
    if (!options.message.isEmpty()) {
        std::fputs(qPrintable(options.message), options.exitCode == 0 ? stdout : stderr);
        return options.exitCode;
    }
    const bool isReport = !options.report.isEmpty();
    if (isReport || !hasDisplay()) {
        if (!isReport && options.screenshot.isEmpty()) {
            std::fputs(
                "klineage: no display (neither DISPLAY nor WAYLAND_DISPLAY is set). Start it in a desktop session, forward "
                "one with ssh -X, or make a picture with --screenshot FILE. klineage-cli does its work without a window.\n",
                stderr);
            return 3;
        }
        qputenv("QT_QPA_PLATFORM", "offscreen");
        qInstallMessageHandler(sayWhatMatters);
    } else {
        ui::preferPortal();
    }
    if (options.scale > 0)
        qputenv("QT_SCALE_FACTOR", QByteArray::number(options.scale));

    QGuiApplication::setDesktopFileName(
        QStringLiteral("org.klineage.Workbench")); // whose icon a desktop shows
    QApplication application(argc, argv);
    if (isReport) {
        ui::Theme::apply(application, ui::ThemeChoice::Light);
        return writeReport(options);
    }
    const bool isPicture = !options.screenshot.isEmpty();
    translate(application);
    // A picture shows the same whatever somebody did before: it neither reads nor writes the session.
    QStringList messages;
    std::unique_ptr<ui::SessionStore> store = isPicture ? nullptr : std::make_unique<ui::SessionStore>();
    const ui::SessionState session = store ? store->load(&messages) : ui::SessionState{};
    ui::Theme::applyButSheet(
        application, ui::themeChoiceFromString(options.theme.isEmpty() ? session.theme : options.theme));

    ui::MainWindow window(isPicture ? ui::MainWindow::Furnish::Now
                                    : ui::MainWindow::Furnish::AfterFirstPaint);
    if (qEnvironmentVariableIntValue("KLINEAGE_STARTUP_TIME") == 1)
        sayStartUp(&window);
    if (store) {
        window.restoreSession(session);
        window.keepSessionIn(store.get());
    }
    for (const QString &message : messages)
        window.sayProblem(message);
    if (options.size.isValid())
        window.resize(options.size);
    else if (isPicture)
        window.resize(1600, 1000); // whatever screen there is
    window.applyLayout(options.layout);
    window.showStory(options.story);
    window.setWanted(options.open, options.card);
    QString why;
    if (const QString root = chooseWorkspace(options, session.workspace, &why); !root.isEmpty())
        window.openWorkspace(root);
    else
        window.showNoWorkspace(why);
    if (!options.kernel.isEmpty())
        window.beginLineage(options.kernel);
    ui::Theme::setSheet(application);
    window.show();
    if (isPicture)
        new app::Screenshot(&window, options.screenshot);
    return QApplication::exec();
}
