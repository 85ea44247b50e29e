// SPDX-License-Identifier: GPL-3.0-or-later
// What `cmake --install` brings, moved to a folder of its own (DESTDIR): it has to work from there, with nothing in the environment.
#include "tests/paths.h"

#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

namespace {

constexpr int limitMs = 300'000; // for what hangs

struct Outcome {
    int status = -1;
    QByteArray out;
    QByteArray err;
};

/// A value of the build's CMakeCache.txt.
QString cached(const QByteArray &name)
{
    QFile file(QString::fromStdString(klineage::test::programPath("/../CMakeCache.txt")));
    if (file.open(QIODevice::ReadOnly)) {
        for (const QByteArray &line : file.readAll().split('\n')) {
            if (line.startsWith(name + ':'))
                return QString::fromUtf8(line.mid(line.indexOf('=') + 1));
        }
    }
    return {};
}

QByteArray readAll(const QString &path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

class TestInstall : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QStringLiteral("DESTDIR"), m_place.filePath(QStringLiteral("root")));
        const Outcome installed =
            run(cached("CMAKE_COMMAND"),
                {QStringLiteral("--install"), QString::fromStdString(klineage::test::programPath("/..")),
                 QStringLiteral("--prefix"), QStringLiteral("/usr")},
                environment);
        QVERIFY2(installed.status == 0, installed.err.constData());
        QVERIFY(QDir(m_place.path()).mkdir(QStringLiteral("home")));
        m_hasWindow = QFile::exists(file("bin/klineage"));
        QCOMPARE(m_hasWindow, QStringList({"ON", "TRUE", "1"}).contains(cached("KLINEAGE_BUILD_UI")));
    }

    void programsStart_data()
    {
        QTest::addColumn<QString>("name");
        for (const char *name : {"klineage", "klineage-cli", "klineage-gate"})
            QTest::newRow(name) << name;
    }

    void programsStart()
    {
        QFETCH(QString, name);
        if (name == QLatin1String("klineage") && !m_hasWindow)
            QSKIP("This build has no window.");
        const Outcome outcome = start(name, {QStringLiteral("--version")});
        QVERIFY2(outcome.status == 0, outcome.err.constData());
        QVERIFY2(outcome.out.startsWith(name.toUtf8() + " " KLINEAGE_VERSION), outcome.out.constData());
    }

    void theExampleIsFound()
    {
        const Outcome cards =
            start(QStringLiteral("klineage-cli"),
                  {QStringLiteral("card"), QStringLiteral("list"), QStringLiteral("--json")});
        QVERIFY2(cards.status == 0, cards.err.constData());
        QVERIFY2(cards.out.contains("\"block-outputs-in-registers\""), cards.out.left(400).constData());
        const Outcome table =
            start(QStringLiteral("klineage-cli"),
                  {QStringLiteral("lineage"), QStringLiteral("table"), QStringLiteral("softmax/pocl")});
        QVERIFY2(table.status == 0 && table.out.contains("K04"), table.err + table.out);
    }

    void aWorkspaceOfOnesOwnGoesFirst()
    {
        const QString own = m_place.filePath(QStringLiteral("own"));
        QVERIFY(QDir().mkpath(own + QStringLiteral("/workloads"))
                && QDir().mkpath(own + QStringLiteral("/skills")));
        const Outcome cards =
            start(QStringLiteral("klineage-cli"), {QStringLiteral("card"), QStringLiteral("list")}, own);
        QVERIFY2(cards.status == 0, cards.err.constData());
        QVERIFY(!cards.out.contains("block-outputs-in-registers"));
    }

    void whatCannotBeWrittenAsksForACopy()
    {
        const QString lock = file("share/klineage/workspace/skills/float4-row-access/.lock");
        QVERIFY(QDir().mkdir(lock)); // stops the administrator too
        const Outcome outcome =
            start(QStringLiteral("klineage-cli"),
                  {QStringLiteral("card"), QStringLiteral("approve"), QStringLiteral("float4-row-access")});
        QVERIFY(QDir().rmdir(lock));
        QCOMPARE(outcome.status, 3);
        QVERIFY2(outcome.err.contains("This workspace is read-only. Copy it"), outcome.err.constData());
    }

    void theGateIsFound()
    {
        const Outcome devices =
            start(QStringLiteral("klineage-cli"),
                  {QStringLiteral("gate"), QStringLiteral("devices"), QStringLiteral("--json")});
        QVERIFY2(QJsonDocument::fromJson(devices.out).object().contains(QStringLiteral("devices")),
                 (devices.out + devices.err).constData());
    }

    void theWindowOpensOnTheExample()
    {
        if (!m_hasWindow)
            QSKIP("This build has no window.");
        const QString picture = m_place.filePath(QStringLiteral("window.png"));
        const Outcome outcome =
            start(QStringLiteral("klineage"), {QStringLiteral("--screenshot"), picture,
                                               QStringLiteral("--open"), QStringLiteral("softmax/pocl/K02")});
        QVERIFY2(outcome.status == 0, outcome.err.constData());
        QVERIFY(readAll(picture).startsWith("\x89PNG"));
        QVERIFY(QFile(picture).size() > 50'000);
    }

    void nothingLooksIntoTheBuild()
    {
        const QString readelf = cached("CMAKE_READELF");
        if (readelf.isEmpty() || !QFile::exists(readelf))
            QSKIP("There is no readelf.");
        int looked = 0;
        for (QDirIterator it(file(""), QDir::Files, QDirIterator::Subdirectories); it.hasNext();) {
            const QString path = it.next();
            if (!readAll(path).startsWith("\x7f"
                                          "ELF"))
                continue;
            const Outcome dynamic = run(readelf, {QStringLiteral("-d"), path});
            QCOMPARE(dynamic.status, 0);
            for (const QByteArray &line : dynamic.out.split('\n')) {
                if (line.contains("RPATH") || line.contains("RUNPATH"))
                    QVERIFY2(line.contains("[$ORIGIN/../lib/klineage]"), (path.toUtf8() + line).constData());
            }
            ++looked;
        }
        QVERIFY(looked >= (m_hasWindow ? 3 : 2));
    }

    void theWorkspaceIsWhole()
    {
        for (const char *part : {"workloads", "skills"}) {
            const QDir source(QString::fromStdString(klineage::test::sourcePath("/")) + QLatin1String(part));
            const QDir installed(file("share/klineage/workspace/") + QLatin1String(part));
            int files = 0;
            for (QDirIterator it(
                     source.path(),
                     {QStringLiteral("*.toml"), QStringLiteral("*.jsonl"), QStringLiteral("*.c[ul]")},
                     QDir::Files, QDirIterator::Subdirectories);
                 it.hasNext(); ++files) {
                const QString path = source.relativeFilePath(it.next());
                QVERIFY2(QFile::exists(installed.filePath(path)), qPrintable(path));
            }
            QVERIFY(files > 0);
        }
        QVERIFY(QFile::exists(file("share/klineage/python/klineage.py")));
        QVERIFY(QFile::exists(file("share/doc/klineage/LICENSE")));
        QVERIFY(!QFile::exists(file("share/doc/klineage/changelog.Debian.gz"))); // for a package alone
    }

    void theDesktopFileIsValid()
    {
        if (!m_hasWindow)
            QSKIP("This build has no window.");
        QVERIFY(QFile::exists(file("share/icons/hicolor/scalable/apps/klineage.svg")));
        const QString validator = QStandardPaths::findExecutable(QStringLiteral("desktop-file-validate"));
        if (validator.isEmpty())
            QSKIP("There is no desktop-file-validate.");
        const Outcome outcome = run(validator, {file("share/applications/org.klineage.Workbench.desktop")});
        QVERIFY2(outcome.status == 0 && outcome.out.isEmpty(), outcome.out + outcome.err);
    }

    void theMetainfoIsValid()
    {
        if (!m_hasWindow)
            QSKIP("This build has no window.");
        const QString validator = QStandardPaths::findExecutable(QStringLiteral("appstreamcli"));
        if (validator.isEmpty())
            QSKIP("There is no appstreamcli.");
        const Outcome outcome = run(validator, {QStringLiteral("validate"), QStringLiteral("--no-net"),
                                                file("share/metainfo/org.klineage.Workbench.metainfo.xml")});
        QVERIFY2(outcome.status == 0, outcome.out + outcome.err);
    }

    void bashCompletes_data()
    {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QByteArray>("expected");
        QTest::newRow("verb") << "gate ru" << QByteArray("run\n");
        QTest::newRow("group") << "linea" << QByteArray("lineage\n");
        QTest::newRow("option") << "card list --js" << QByteArray("--json\n");
        QTest::newRow("choice") << "gate run --backend op" << QByteArray("opencl\n");
        QTest::newRow("after =") << "gate run --backend = op" << QByteArray("opencl\n");
        QTest::newRow("a file") << "gate run --workload l" << QByteArray();
        QTest::newRow("an argument") << "card show l" << QByteArray();
    }

    void bashCompletes()
    {
        QFETCH(QString, line);
        QFETCH(QByteArray, expected);
        const QString bash = QStandardPaths::findExecutable(QStringLiteral("bash"));
        if (bash.isEmpty())
            QSKIP("There is no bash.");
        const QString script = QStringLiteral("source '%1' || exit 9; COMP_WORDS=(klineage-cli %2); "
                                              "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _klineage_cli; "
                                              "printf '%s\\n' \"${COMPREPLY[@]}\" | sed '/^$/d'")
                                   .arg(file("share/bash-completion/completions/klineage-cli"), line);
        const Outcome outcome = run(bash, {QStringLiteral("-c"), script});
        QVERIFY2(outcome.status == 0 && outcome.err.isEmpty(), outcome.err.constData());
        QCOMPARE(outcome.out, expected);
    }

    void shellsReadTheirCompletions_data()
    {
        QTest::addColumn<QString>("shell");
        QTest::addColumn<QString>("path");
        for (const char *program : {"klineage", "klineage-cli", "klineage-gate"}) {
            const QString name = QLatin1String(program);
            QTest::addRow("bash %s", program) << "bash"
                                              << "share/bash-completion/completions/" + name;
            QTest::addRow("zsh %s", program) << "zsh"
                                             << "share/zsh/vendor-completions/_" + name;
            QTest::addRow("fish %s", program) << "fish"
                                              << "share/fish/vendor_completions.d/" + name + ".fish";
        }
    }

    void shellsReadTheirCompletions()
    {
        QFETCH(QString, shell);
        QFETCH(QString, path);
        const QString program = QStandardPaths::findExecutable(shell);
        if (!QFile::exists(file("") + path) && !m_hasWindow)
            QSKIP("This build has no window.");
        QVERIFY(!readAll(file("") + path).isEmpty());
        if (program.isEmpty())
            QSKIP("This shell is not here.");
        const Outcome outcome = run(program, {QStringLiteral("-n"), file("") + path});
        QVERIFY2(outcome.status == 0 && outcome.err.isEmpty(), outcome.err.constData());
    }

    void manualPagesAreThere()
    {
        for (const char *name : {"klineage", "klineage-cli", "klineage-gate"}) {
            const QString page = file("share/man/man1/") + QLatin1String(name) + QStringLiteral(".1");
            const bool isThere = QFile::exists(page) || QFile::exists(page + QStringLiteral(".gz"));
            QVERIFY2(isThere || (!m_hasWindow && qstrcmp(name, "klineage") == 0), name);
        }
    }

private:
    [[nodiscard]] QString file(const char *path) const
    {
        return m_place.filePath(QStringLiteral("root/usr/")) + QLatin1String(path);
    }

    static Outcome run(const QString &program, const QStringList &arguments,
                       const QProcessEnvironment &environment = QProcessEnvironment::systemEnvironment(),
                       const QString &folder = QStringLiteral("/"))
    {
        QProcess process;
        process.setProcessEnvironment(environment);
        process.setWorkingDirectory(folder);
        process.start(program, arguments);
        if (!process.waitForFinished(limitMs))
            process.kill();
        const bool ended =
            process.state() == QProcess::NotRunning && process.exitStatus() == QProcess::NormalExit;
        return {ended ? process.exitCode() : -1, process.readAllStandardOutput(),
                process.readAllStandardError()};
    }

    /// A program that was installed, with no more in its environment than a home.
    [[nodiscard]] Outcome start(const QString &name, const QStringList &arguments,
                                const QString &folder = QStringLiteral("/")) const
    {
        QProcessEnvironment environment;
        environment.insert(QStringLiteral("PATH"), QStringLiteral("/usr/bin:/bin"));
        environment.insert(QStringLiteral("HOME"), m_place.filePath(QStringLiteral("home")));
        return run(file("bin/") + name, arguments, environment, folder);
    }

    QTemporaryDir m_place;
    bool m_hasWindow = false;
};

QTEST_GUILESS_MAIN(TestInstall)
#include "tst_install.moc"
