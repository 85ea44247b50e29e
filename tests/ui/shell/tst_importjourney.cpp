// SPDX-License-Identifier: GPL-3.0-or-later
// What others have comes in: cards of other libraries, problems of other benchmarks, archives of other searches, with real keys.
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/begin/importdialog.h"
#include "ui/begin/importmodel.h"

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProcess>
#include <QProgressBar>
#include <QSpinBox>
#include <QTableView>

#include <algorithm>
#include <csignal>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// A problem as FlashInfer Trace has them; its reference is plain Python.
const char *const rowSums =
    R"({"name": "row sums", "op_type": "reduction", "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 24}},
 "inputs": {"x": {"shape": ["rows", "hidden"], "dtype": "float32"}},
 "outputs": {"y": {"shape": ["rows"], "dtype": "float32"}},
 "reference": "def run(x):\n    return [sum(float(v) for v in row) for row in x]\n"})";
const char *const rowSumsBinding =
    R"({"uuid": "a", "axes": {"rows": 8}, "inputs": {"x": {"type": "random"}}})";

QString written(const QTemporaryDir &folder, const QString &name, const QByteArray &text)
{
    QDir(folder.path()).mkpath(QFileInfo(name).path());
    QFile file(folder.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(text) < 0)
        qFatal("cannot write %s", qPrintable(file.fileName()));
    return file.fileName();
}

/// A program of OpenEvolve that computes softmax.
QByteArray program(const QString &id, const QString &parent, double score)
{
    const QString code =
        QStringLiteral(
            "// %1\n__kernel void softmax(__global const float *x, __global float *y, int R, int C)\n"
            "{\n    int r = get_global_id(0);\n    if (r >= R)\n        return;\n"
            "    float top = -INFINITY, sum = 0;\n"
            "    for (int c = 0; c < C; ++c)\n        top = fmax(top, x[r * C + c]);\n"
            "    for (int c = 0; c < C; ++c)\n        sum += exp(x[r * C + c] - top);\n"
            "    for (int c = 0; c < C; ++c)\n        y[r * C + c] = exp(x[r * C + c] - top) / sum;\n}\n")
            .arg(id);
    return QJsonDocument(QJsonObject{{"id", id},
                                     {"parent_id", parent.isEmpty() ? QJsonValue() : QJsonValue(parent)},
                                     {"generation", parent.isEmpty() ? 0 : 1},
                                     {"language", "opencl"},
                                     {"code", code},
                                     {"metrics", QJsonObject{{"combined_score", score}}}})
        .toJson();
}

/// A checkpoint of OpenEvolve: two programs to the best, one beside them, and one that cannot be read.
void writeCheckpoint(const QTemporaryDir &folder)
{
    const QString programs = QStringLiteral("checkpoints/checkpoint_5/programs/");
    written(folder, programs + "a.json", program("a", {}, 1));
    written(folder, programs + "b.json", program("b", "a", 2));
    written(folder, programs + "c.json", program("c", "a", 1.5));
    written(folder, programs + "d.json", "{\"id\": \"d");
    written(folder, QStringLiteral("checkpoints/checkpoint_5/metadata.json"), R"({"best_program_id": "b"})");
}

/// A signal that a stopped process has been sent waits for it.
bool waitsFor(qint64 process, int signal)
{
    QFile status(QStringLiteral("/proc/%1/status").arg(process));
    if (!status.open(QIODevice::ReadOnly))
        return false;
    for (const QByteArray &line : status.readAll().split('\n')) {
        if (line.startsWith("ShdPnd:"))
            return (line.mid(7).trimmed().toULongLong(nullptr, 16) >> (signal - 1)) & 1U;
    }
    return false;
}

} // namespace

class TestImportJourney : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        qputenv("PATH", QByteArray::fromStdString(klineage::test::programPath()) + ':' + qgetenv("PATH"));
    }

    void cardsComeInWithAReport()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        const std::size_t before = real.window->workspace()->workspace().cards.size();
        ImportDialog *dialog = openImport(real, QStringLiteral("import cards"));
        QVERIFY(dialog);
        typeFrom(*dialog, QString::fromStdString(klineage::test::sourcePath("/tests/data/foreigncards")));
        // Looked at first: nothing is written.
        QTest::keyClick(dialog->findChild<QLineEdit *>(QStringLiteral("import.from")), Qt::Key_Return);
        QTRY_VERIFY(!dialog->isRunning());
        const ImportReport looked = dialog->model()->report();
        QVERIFY2(looked.imported > 2, qPrintable(dialog->summary()));
        QVERIFY(dialog->summary().contains(QLatin1String("Nothing was written")));
        int skipped = 0;
        for (const ImportedEntry &entry : looked.entries) {
            QCOMPARE(entry.name.isEmpty(), !entry.reason.isEmpty());
            skipped += entry.name.isEmpty() ? 1 : 0;
        }
        QVERIFY(skipped >= 2); // what is broken on purpose
        QCOMPARE(real.window->workspace()->workspace().cards.size(), before);
        // The button is seen to go down before it is clicked: the report is waited for.
        QTest::keyClick(dialog, Qt::Key_I, Qt::AltModifier);
        QTRY_VERIFY2(dialog->summary().contains(QLatin1String("as hypotheses")),
                     qPrintable(dialog->summary()));
        QVERIFY(!dialog->isRunning());
        QCOMPARE(dialog->model()->report().imported, looked.imported);
        QTest::keyClick(dialog, Qt::Key_Escape);
        QTRY_COMPARE(real.window->workspace()->workspace().cards.size(),
                     before + static_cast<std::size_t>(looked.imported));
        // Again, and they are there already.
        QVERIFY(real.settle());
        QVERIFY(takeKeys(*real.window));
        QCOMPARE(openImport(real, QStringLiteral("import cards")), dialog);
        typeFrom(*dialog, QString::fromStdString(klineage::test::sourcePath("/tests/data/foreigncards")));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_VERIFY(!dialog->isRunning());
        QVERIFY2(dialog->summary().startsWith(QLatin1String("0 would come in")),
                 qPrintable(dialog->summary()));
        QCOMPARE(dialog->model()->report().imported, 0);
    }

    void problemsComeInWithAReport()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        const QTemporaryDir set;
        written(set, QStringLiteral("rows.json"), rowSums);
        written(set, QStringLiteral("rows.jsonl"), rowSumsBinding);
        written(set, QStringLiteral("readme.txt"), "no problem");
        ImportDialog *dialog = openImport(real, QStringLiteral("import problems"));
        QVERIFY(dialog);
        typeFrom(*dialog, set.path());
        QTest::keyClick(dialog, Qt::Key_I, Qt::AltModifier);
        QTRY_VERIFY(!dialog->isRunning() && !dialog->summary().isEmpty());
        const ImportReport &report = dialog->model()->report();
        if (std::any_of(report.entries.begin(), report.entries.end(), [](const ImportedEntry &entry) {
                return entry.reason.contains(QLatin1String("It needs python3"));
            }))
            QSKIP("There is no python3.");
        QVERIFY2(report.imported == 1 && report.entries.size() == 2, qPrintable(dialog->summary()));
        QTest::keyClick(dialog, Qt::Key_Escape);
        const auto imported = [&real] {
            const auto &workloads = real.window->workspace()->workspace().workloads;
            return std::any_of(workloads.begin(), workloads.end(), [](const workload::Workload &one) {
                return one.name == "row-sums" || one.name == "row_sums";
            });
        };
        QTRY_VERIFY(imported());
    }

    /// The template is written, looked at, and becomes a workload; another function is refused, then takes its place.
    void aPythonFunctionBecomesAWorkload()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        const QTemporaryDir folder;
        const QString file = folder.filePath(QStringLiteral("scaled_rows.py"));
        ImportDialog *dialog = openImport(real, QStringLiteral("new operator"));
        QVERIFY(dialog);
        choose(*dialog, Qt::Key_T, file);
        QTRY_VERIFY(QFileInfo::exists(file));
        QCOMPARE(dialog->findChild<QLineEdit *>(QStringLiteral("import.from"))->text(), file);
        QVERIFY(!dialog->findChild<QLineEdit *>(QStringLiteral("import.sizes"))->text().isEmpty());
        QVERIFY(takeKeys(*dialog));
        look(*dialog);
        if (dialog->summary().contains(QLatin1String("numpy"))
            || dialog->summary().contains(QLatin1String("It needs python3")))
            QSKIP("There is no python3 with numpy.");
        QCOMPARE(dialog->summary(),
                 QStringLiteral("It would become the workload scaled_rows. Nothing was written."));
        const QString target = real.folder.filePath(QStringLiteral("workloads/scaled_rows"));
        QVERIFY(!QFileInfo::exists(target));
        press(*dialog, Qt::Key_Z, QStringLiteral("import.sizes"));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_A, Qt::ControlModifier);
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("R=64 C=96"));
        QTest::keyClick(dialog, Qt::Key_I, Qt::AltModifier);
        QTRY_VERIFY2(dialog->summary().startsWith(QLatin1String("It became the workload scaled_rows.")),
                     qPrintable(dialog->summary()));
        QVERIFY(QFileInfo::exists(target + QStringLiteral("/reference.py")));

        // There is one of that name now.
        look(*dialog);
        QVERIFY2(dialog->summary().contains(QLatin1String("the field Replace puts this one in its place")),
                 qPrintable(dialog->summary()));
        press(*dialog, Qt::Key_P,
              QStringLiteral("import.replace")); // which ticks it, once it was seen to go down
        QTRY_VERIFY(dialog->findChild<QCheckBox *>(QStringLiteral("import.replace"))->isChecked());
        written(folder, QStringLiteral("scaled_rows.py"),
                "import numpy as np\ndef run(x: 'f32[R, C]') -> 'f32[R, C]':\n    return 0 * x\n");
        look(*dialog);
        QVERIFY2(dialog->summary().startsWith(QLatin1String("Refused: "))
                     && dialog->summary().contains(QLatin1String("takes no work")),
                 qPrintable(dialog->summary()));
        written(folder, QStringLiteral("scaled_rows.py"),
                "import numpy as np\ndef run(x: 'f32[R, C]') -> 'f32[R, C]':\n    return 3 * x + 1\n");
        QTest::keyClick(dialog, Qt::Key_I, Qt::AltModifier);
        QTRY_VERIFY2(dialog->summary().startsWith(QLatin1String("It became the workload scaled_rows.")),
                     qPrintable(dialog->summary()));
        QVERIFY(QFileInfo::exists(target + QStringLiteral("/replaced-1/reference.py")));
        const ImportReport report = dialog->model()->report();
        QVERIFY(report.entries.size() == 1
                && report.entries.front().source == QLatin1String("scaled_rows.py"));
        QVERIFY(report.entries.front().notes.join(u' ').contains(QLatin1String("replaced-1")));
        QTest::keyClick(dialog, Qt::Key_Escape);
        const auto isThere = [&real] {
            const auto &workloads = real.window->workspace()->workspace().workloads;
            return std::any_of(workloads.begin(), workloads.end(),
                               [](const workload::Workload &one) { return one.name == "scaled_rows"; });
        };
        QTRY_VERIFY(isThere());
    }

    /// Looked at, imported, opened, and gated by the commands that are copied.
    void anArchiveBecomesALineage()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        const QTemporaryDir search;
        writeCheckpoint(search);
        const std::size_t before = real.window->workspace()->workspace().lineages.size();
        ImportDialog *dialog = openImport(real, QStringLiteral("import archive"));
        QVERIFY(dialog);
        QCOMPARE(dialog->findChild<QComboBox *>(QStringLiteral("import.workload"))->currentText(),
                 QStringLiteral("softmax")); // that is looked at
        auto *commands = dialog->findChild<QPlainTextEdit *>(QStringLiteral("import.commands"));
        typeFrom(*dialog, search.path());
        press(*dialog, Qt::Key_N, QStringLiteral("import.name"));
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("mine"));
        look(*dialog);
        QVERIFY2(dialog->summary().startsWith(
                     QLatin1String("It would become softmax/pocl-mine. States: 2, attempts: 1, skipped: 1.")),
                 qPrintable(dialog->summary()));
        QVERIFY(!commands->isVisible());
        const ImportReport looked = dialog->model()->report();
        QStringList rows;
        for (const ImportedEntry &entry : looked.entries)
            rows << (entry.name.isEmpty() ? entry.source : entry.name);
        QCOMPARE(rows, QStringList({"softmax/pocl-mine", "K00", "K01", "R00a", "programs/d.json"}));
        QVERIFY(looked.entries[2].part == ImportedEntry::Part::State
                && looked.entries[2].source == QLatin1String("programs/b.json"));
        QVERIFY2(looked.entries[2].notes.join(u' ').contains(QLatin1String("combined_score 2")),
                 qPrintable(looked.entries[2].notes.join(u' ')));
        QVERIFY(looked.entries[3].part == ImportedEntry::Part::Attempt);
        QVERIFY(!looked.entries[4].reason.isEmpty());
        const QString folder = real.folder.filePath(QStringLiteral("workloads/softmax/lineages/pocl-mine"));
        QVERIFY(!QFileInfo::exists(folder));

        QTest::keyClick(dialog, Qt::Key_I, Qt::AltModifier);
        QTRY_VERIFY2(dialog->summary().startsWith(QLatin1String("It became softmax/pocl-mine.")),
                     qPrintable(dialog->summary()));
        QVERIFY(QFileInfo::exists(folder));
        QTRY_VERIFY(commands->isVisible());
        QApplication::clipboard()->clear();
        QTest::keyClick(dialog, Qt::Key_Y, Qt::AltModifier);
        QTRY_VERIFY(!QApplication::clipboard()->text().isEmpty());
        const QStringList copied = QApplication::clipboard()->text().split(u'\n');
        QCOMPARE(copied.size(), 3);
        QVERIFY(copied[1].startsWith(QLatin1String("klineage-gate batch ")));
        // In whichever folder that is: the first of them makes the jobs.
        const QTemporaryDir elsewhere;
        QProcess shell;
        shell.setWorkingDirectory(elsewhere.path());
        shell.start(QStringLiteral("sh"), {QStringLiteral("-c"), copied[0]});
        QVERIFY(shell.waitForFinished(patienceMs));
        QVERIFY2(shell.exitCode() == 0, shell.readAllStandardError().constData());
        QFile jobs(elsewhere.filePath(QStringLiteral("jobs.jsonl")));
        QVERIFY(jobs.open(QIODevice::ReadOnly));
        QCOMPARE(jobs.readAll().count('\n'), 3);

        QTest::keyClick(dialog, Qt::Key_C, Qt::AltModifier);
        QTRY_COMPARE(real.selection()->lineageKey(), QStringLiteral("softmax/pocl-mine"));
        QVERIFY(real.settle());
        QCOMPARE(real.row(), QStringLiteral("K01"));
        const lineage::Lineage *lineage =
            real.window->workspace()->lineage(QStringLiteral("softmax/pocl-mine"));
        QVERIFY(lineage && lineage->trials.empty() && lineage->states.size() == 2);
        QCOMPARE(real.window->workspace()->workspace().lineages.size(), before + 1);

        // A second one of that name is refused, and what was typed stays.
        QVERIFY(takeKeys(*real.window));
        QCOMPARE(openImport(real, QStringLiteral("import archive")), dialog);
        QVERIFY(!commands->isVisible());
        typeFrom(*dialog, search.path());
        look(*dialog);
        QVERIFY2(dialog->summary().contains(
                     QLatin1String("There is a lineage softmax/pocl-mine already; choose another name.")),
                 qPrintable(dialog->summary()));
        auto *name = dialog->findChild<QLineEdit *>(QStringLiteral("import.name"));
        QCOMPARE(name->text(), QStringLiteral("mine"));
        press(*dialog, Qt::Key_N, QStringLiteral("import.name"));
        QTest::keyClicks(name, QStringLiteral("other"));
        look(*dialog);
        QVERIFY2(dialog->summary().startsWith(QLatin1String("It would become softmax/pocl-other.")),
                 qPrintable(dialog->summary()));
    }

    /// Each of its fields by its key; what is wrong is said in their words, and nothing that was typed is lost.
    void theFieldsOfAnArchive()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        const QTemporaryDir search;
        writeCheckpoint(search);
        ImportDialog *dialog = openImport(real, QStringLiteral("import archive"));
        QVERIFY(dialog);
        const auto *from = dialog->findChild<QLineEdit *>(QStringLiteral("import.from"));
        choose(*dialog, Qt::Key_E, written(search, QStringLiteral("notes.txt"), "no archive"));
        QTRY_COMPARE(from->text(), search.filePath(QStringLiteral("notes.txt")));
        QVERIFY(takeKeys(*dialog));
        look(*dialog);
        QVERIFY2(dialog->summary().startsWith(QLatin1String("Nothing would come in: ")),
                 qPrintable(dialog->summary()));
        choose(*dialog, Qt::Key_F, search.path());
        QTRY_COMPARE(from->text(), search.path());
        QVERIFY(takeKeys(*dialog));

        press(*dialog, Qt::Key_P, QStringLiteral("import.platform"));
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("of mine"));
        look(*dialog);
        QVERIFY2(dialog->summary().contains(QLatin1String("'of mine' is no platform")),
                 qPrintable(dialog->summary()));
        auto *platform = dialog->findChild<QComboBox *>(QStringLiteral("import.platform"));
        QCOMPARE(platform->currentText(), QStringLiteral("of mine"));
        QCOMPARE(from->text(), search.path());
        platform->lineEdit()->selectAll();
        QTest::keyClicks(platform->lineEdit(), QStringLiteral("pocl"));

        press(*dialog, Qt::Key_U, QStringLiteral("import.surface"));
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("cuda"));
        look(*dialog);
        QVERIFY2(dialog->summary().startsWith(QLatin1String("Nothing would come in: ")),
                 qPrintable(dialog->summary()));
        press(*dialog, Qt::Key_U, QStringLiteral("import.surface"));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Home);

        press(*dialog, Qt::Key_G, QStringLiteral("import.most"));
        auto *most = dialog->findChild<QSpinBox *>(QStringLiteral("import.most"));
        most->selectAll();
        QTest::keyClicks(most, QStringLiteral("2"));
        look(*dialog);
        QVERIFY2(dialog->summary().contains(QLatin1String("States: 2, attempts: 0, skipped: 1.")),
                 qPrintable(dialog->summary()));
        QVERIFY(dialog->model()->report().entries.front().notes.join(u'\n').contains(
            QLatin1String("because the field Programs is 2.")));

        // Another workload's lineages lie on other devices: the platform is not told by them.
        platform->lineEdit()->clear();
        press(*dialog, Qt::Key_W, QStringLiteral("import.workload"));
        auto *workload = dialog->findChild<QComboBox *>(QStringLiteral("import.workload"));
        const int at = withoutPlatformsOf(real, kernel::DeviceKind::OpenCl, *workload);
        if (at >= 0) {
            workload->setCurrentIndex(at);
            look(*dialog);
            QVERIFY2(dialog->summary().contains(QLatin1String("with the field Platform")),
                     qPrintable(dialog->summary()));
        }
        press(*dialog, Qt::Key_R, QStringLiteral("import.from"));
    }

    /// Stopped in the middle, nothing is written and nothing that was typed is lost.
    void anImportIsStopped()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        const QTemporaryDir search;
        writeCheckpoint(search);
        ImportDialog *dialog = openImport(real, QStringLiteral("import archive"));
        QVERIFY(dialog);
        typeFrom(*dialog, search.path());
        auto *from = dialog->findChild<QLineEdit *>(QStringLiteral("import.from"));
        const auto *busy = dialog->findChild<QProgressBar *>();
        auto *process = dialog->findChild<QProcess *>();
        QVERIFY(busy && process && !busy->isVisible());
        // It may be done before it is halted, and then is begun again.
        bool isStopped = false;
        for (int i = 0; i < 50 && !isStopped; ++i) {
            from->setFocus();
            QTest::keyClick(from, Qt::Key_Return);
            const qint64 id = process->processId();
            QVERIFY(id > 0 && ::kill(static_cast<pid_t>(id), SIGSTOP) == 0);
            QVERIFY(dialog->isRunning() && busy->isVisible());
            QTest::keyClick(dialog, Qt::Key_S, Qt::AltModifier);
            QTRY_VERIFY(!dialog->isRunning() || waitsFor(id, SIGTERM));
            if (dialog->isRunning())
                ::kill(static_cast<pid_t>(id), SIGCONT);
            QTRY_VERIFY(!dialog->isRunning());
            isStopped = dialog->summary().startsWith(QLatin1String("The import was stopped."));
        }
        QVERIFY2(isStopped, qPrintable(dialog->summary()));
        QVERIFY(!busy->isVisible());
        QCOMPARE(from->text(), search.path());
        QVERIFY(!QFileInfo::exists(
            real.folder.filePath(QStringLiteral("workloads/softmax/lineages/pocl-openevolve"))));
        look(*dialog);
        QVERIFY2(dialog->summary().startsWith(QLatin1String("It would become softmax/pocl-openevolve.")),
                 qPrintable(dialog->summary()));
    }

private:
    /// The key of a field, which then has the focus.
    static void press(ImportDialog &dialog, Qt::Key key, const QString &field)
    {
        QTest::keyClick(&dialog, key, Qt::AltModifier);
        QTRY_VERIFY2(QApplication::focusWidget() == dialog.findChild<QWidget *>(field), qPrintable(field));
    }

    /// Return in the first field, and the report is waited for.
    static void look(ImportDialog &dialog)
    {
        press(dialog, Qt::Key_R, QStringLiteral("import.from"));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QVERIFY(dialog.isRunning());
        QTRY_VERIFY(!dialog.isRunning());
    }

    /// By the key of the button, in the dialog that it opens.
    void choose(ImportDialog &dialog, Qt::Key key, const QString &path)
    {
        withNextModal<QFileDialog>(this, [path](QFileDialog &files) {
            files.findChild<QLineEdit *>(QStringLiteral("fileNameEdit"))->setText(path);
            QMetaObject::invokeMethod(&files, "accept");
        });
        QTest::keyClick(&dialog, key, Qt::AltModifier);
    }

    /// A workload that no lineage on such a device is of; negative: there is none.
    static int withoutPlatformsOf(const RealWindow &real, kernel::DeviceKind kind, const QComboBox &workloads)
    {
        for (int i = 0; i < workloads.count(); ++i) {
            const auto &lineages = real.window->workspace()->workspace().lineages;
            if (std::none_of(lineages.begin(), lineages.end(), [&](const lineage::Lineage &lineage) {
                    return lineage.workload == workloads.itemText(i).toStdString()
                           && kernel::deviceOfPlatform(lineage.platform) == kind;
                }))
                return i;
        }
        return -1;
    }

    static void typeFrom(const ImportDialog &dialog, const QString &path)
    {
        auto *from = dialog.findChild<QLineEdit *>(QStringLiteral("import.from"));
        from->setFocus();
        QTest::keyClicks(from, path);
        QCOMPARE(from->text(), path);
    }

    static ImportDialog *openImport(const RealWindow &real, const QString &command)
    {
        real.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        real.type(command);
        real.press(Qt::Key_Return);
        auto *dialog = real.window->findChild<ImportDialog *>();
        return dialog && getsKeys(*dialog) ? dialog : nullptr;
    }
};

KLINEAGE_UI_TEST(TestImportJourney)
#include "tst_importjourney.moc"
