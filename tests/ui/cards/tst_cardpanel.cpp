// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/patience.h"
#include "ui/cards/cardeditor.h"
#include "ui/cards/cardhtml.h"
#include "ui/cards/cardpanel.h"
#include "ui/cards/cardreviewer.h"
#include "ui/cards/evidence.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBrowser>

using namespace klineage;
using namespace klineage::ui;

namespace {

skills::Card sampleCard()
{
    skills::Card card;
    card.name = "tile-in-shared";
    card.category = "tiling";
    card.locus = "k-loop operand load";
    card.intent = {"Stage reused tiles in shared memory", {"sgemm/pocl/K01"}};
    card.anchor = {"the k loop", {"sgemm/pocl/K01"}};
    card.preconditions = {{"Each element is read more than once", {"sgemm/pocl/K01"}}};
    card.effects = {{"2.0x", {"sgemm/pocl/K01"}}};
    card.risks = {{"Bank conflicts", {"sgemm/pocl/R01a"}}};
    card.scope = {{"sgemm"}, {"opencl"}, {"pocl"}, {}};
    card.provides = {{"k-loop operand load", "shared_tile"}};
    card.evidence = {"sgemm/pocl/K01"};
    card.carrierFile = "carrier.cl";
    return card;
}

QPushButton *button(QWidget *panel, const QString &text)
{
    for (QPushButton *candidate : panel->findChildren<QPushButton *>()) {
        if (candidate->text().startsWith(text))
            return candidate;
    }
    return nullptr;
}

} // namespace

class TestCardPanel : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { QStandardPaths::setTestModeEnabled(true); }

    void init()
    {
        CardReviewer::setAuthor(QStringLiteral("Grace Hopper"));
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support)")));
        m_folder = std::make_unique<QTemporaryDir>();
        QDir(m_folder->path()).mkpath(QStringLiteral("skills"));
        QDir(m_folder->path()).mkpath(QStringLiteral("workloads"));
        const skills::CardStore store(m_folder->filePath(QStringLiteral("skills")).toStdString());
        const auto created = store.create(sampleCard(), "barrier(CLK_LOCAL_MEM_FENCE);\n");
        QVERIFY2(created, created ? "" : created.error().message.c_str());
        m_workspace = std::make_unique<WorkspaceModel>();
        m_workspace->openNow(m_folder->path());
        m_selection = std::make_unique<Selection>();
        m_reviewer = std::make_unique<CardReviewer>(m_workspace.get());
        m_panel = std::make_unique<CardPanel>(m_workspace.get(), m_selection.get(), m_reviewer.get());
        m_panel->show();
        m_selection->setCard(QStringLiteral("tile-in-shared"));
    }

    void cleanup()
    {
        m_panel.reset();
        m_reviewer.reset();
        QDir(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation)).removeRecursively();
    }

    void approveIsWrittenWithAuthorAndRevision()
    {
        QSignalSpy written(m_reviewer.get(), &CardReviewer::written);
        QTest::mouseClick(button(m_panel.get(), QStringLiteral("Approve")), Qt::LeftButton);
        QTRY_COMPARE(written.count(), 1);
        const skills::Review *standing = record().standingReview();
        QVERIFY(standing);
        QCOMPARE(standing->verdict, skills::ReviewVerdict::Approve);
        QCOMPARE(standing->cardRevision, 1);
        QVERIFY(!standing->author.empty() && !standing->time.empty());
    }

    void rejectNeedsAReason()
    {
        QSignalSpy written(m_reviewer.get(), &CardReviewer::written);
        QTest::mouseClick(button(m_panel.get(), QStringLiteral("Reject…")), Qt::LeftButton);
        auto *reason = m_panel->findChild<QLineEdit *>();
        QVERIFY(reason->isVisible());
        QTest::keyClick(reason, Qt::Key_Return);
        QCOMPARE(written.count(), 0);
        QTest::keyClicks(reason, QStringLiteral("risk unproven"));
        QTest::keyClick(reason, Qt::Key_Return);
        QTRY_COMPARE(written.count(), 1);
        QCOMPARE(record().standingReview()->reason, std::string("risk unproven"));
    }

    void undoAppendsAReversal()
    {
        QSignalSpy written(m_reviewer.get(), &CardReviewer::written);
        m_panel->approve();
        QTRY_COMPARE(written.count(), 1);
        QVERIFY(m_reviewer->canUndoAnything());
        QTest::mouseClick(button(m_panel.get(), QStringLiteral("Undo")), Qt::LeftButton);
        QTRY_COMPARE(written.count(), 2);
        QVERIFY(!record().standingReview());
        QCOMPARE(record().reviews.size(), std::size_t(2));
        QVERIFY(!m_reviewer->canUndoAnything());
    }

    /// Of a batch what can be written is; the rest is said, and the undo takes back what was.
    void aBatchLeavesOutWhatChangedMeanwhile()
    {
        const skills::CardStore store(m_folder->filePath(QStringLiteral("skills")).toStdString());
        skills::Card other = sampleCard();
        other.name = "other-card";
        QVERIFY(store.create(other, "barrier(CLK_LOCAL_MEM_FENCE);\n"));
        m_workspace->openNow(m_folder->path());
        other.intent.text = "Changed by somebody else.";
        QVERIFY(store.save(other, "Ada", "meanwhile"));
        QSignalSpy written(m_reviewer.get(), &CardReviewer::written);
        QSignalSpy failed(m_reviewer.get(), &CardReviewer::failed);
        m_selection->setMarkedCards({QStringLiteral("other-card"), QStringLiteral("tile-in-shared")});
        QTest::mouseClick(button(m_panel.get(), QStringLiteral("Approve")), Qt::LeftButton);
        QCOMPARE(written.count(), 0); // asks first
        QTest::mouseClick(button(m_panel.get(), QStringLiteral("Approve 2")), Qt::LeftButton);
        QTRY_COMPARE(written.count(), 1);
        QCOMPARE(failed.count(), 1);
        QCOMPARE(failed[0][0].toString(), QStringLiteral("other-card"));
        QVERIFY(written[0][1].toString().contains(QStringLiteral("1 of 2 cards")));
        QVERIFY(record().standingReview());
        QVERIFY(!m_workspace->card(QStringLiteral("other-card"))->standingReview());
        m_reviewer->undo({{QStringLiteral("tile-in-shared")}, {}, {}});
        QTRY_COMPARE(written.count(), 2);
        QVERIFY(!record().standingReview());
    }

    void editValidatesAsYouTypeAndSavesARevision()
    {
        addEvidence();
        m_panel->edit();
        auto *editor = m_panel->findChild<CardEditor *>();
        editor->text()->selectAll();
        QTest::keyClicks(editor->text(), QStringLiteral("nonsense"));
        QTRY_VERIFY(!editor->card());
        QVERIFY(!button(editor, QStringLiteral("Save"))->isEnabled());
        skills::Card changed = sampleCard();
        changed.intent.text = "Stage reused tiles in local memory";
        editor->text()->setPlainText(QString::fromStdString(skills::writeCard(changed)));
        QTRY_VERIFY(button(editor, QStringLiteral("Save"))->isEnabled());
        QSignalSpy written(m_reviewer.get(), &CardReviewer::written);
        QTest::mouseClick(button(editor, QStringLiteral("Save")), Qt::LeftButton);
        QTRY_COMPARE(written.count(), 1);
        QCOMPARE(record().card.revision, 2);
        QCOMPARE(record().card.intent.text, changed.intent.text);
        m_reviewer->undo({{QStringLiteral("tile-in-shared")}, {}, {}});
        QTRY_COMPARE(written.count(), 2);
        QCOMPARE(record().card.intent.text, sampleCard().intent.text);
    }

    void draftsSurvive()
    {
        m_panel->edit();
        auto *editor = m_panel->findChild<CardEditor *>();
        editor->text()->moveCursor(QTextCursor::End);
        QTest::keyClicks(editor->text(), QStringLiteral("# remember me"));
        QTRY_VERIFY(editor->hasDraft(QStringLiteral("tile-in-shared")));
        CardEditor second(m_workspace.get());
        second.open(record());
        QVERIFY(second.text()->toPlainText().contains(QStringLiteral("# remember me")));
        second.text()->undo();
        QVERIFY(!second.isModified());
    }

    /// Two workspaces have a card of one name: what is typed in one is nowhere in the other.
    void draftsOfTwoWorkspacesStayApart()
    {
        const QTemporaryDir other;
        QDir(other.path()).mkpath(QStringLiteral("skills"));
        QDir(other.path()).mkpath(QStringLiteral("workloads"));
        QVERIFY(skills::CardStore(other.filePath(QStringLiteral("skills")).toStdString())
                    .create(sampleCard(), "barrier(CLK_LOCAL_MEM_FENCE);\n"));
        const QString name = QStringLiteral("tile-in-shared");
        m_panel->edit();
        auto *editor = m_panel->findChild<CardEditor *>();
        editor->text()->moveCursor(QTextCursor::End);
        QTest::keyClicks(editor->text(), QStringLiteral("# of the first"));
        // Before the draft is written by itself: the other one is opened while the text is on the screen.
        m_workspace->openNow(other.path());
        QVERIFY(!editor->isVisible()); // a text of one workspace cannot be saved into another
        QVERIFY(!editor->hasDraft(name));
        m_panel->edit();
        QVERIFY(!editor->text()->toPlainText().contains(QStringLiteral("# of the first")));
        editor->text()->moveCursor(QTextCursor::End);
        QTest::keyClicks(editor->text(), QStringLiteral("# of the second"));
        QTRY_VERIFY(editor->hasDraft(name));
        m_workspace->openNow(m_folder->path());
        QVERIFY(editor->hasDraft(name));
        m_panel->edit();
        QVERIFY(editor->text()->toPlainText().contains(QStringLiteral("# of the first")));
        QVERIFY(!editor->text()->toPlainText().contains(QStringLiteral("# of the second")));
        editor->discardDraft();
        QVERIFY(!editor->hasDraft(name));
        m_workspace->openNow(other.path());
        QVERIFY(editor->hasDraft(name)); // that of the other one stays
    }

    void cardTextIsEscaped()
    {
        skills::CardRecord hostile;
        hostile.card = sampleCard();
        hostile.card.intent.text = "<img src='file:///etc/passwd'><b>bold</b>";
        QVERIFY(!fieldsHtml(hostile).contains(QStringLiteral("<img")));
        QVERIFY(!fieldsHtml(hostile).contains(QStringLiteral("<b>")));
    }

    void verifiedScopeIsNotTheClaim()
    {
        skills::CardRecord record;
        record.card.name = "a-card";
        record.card.scope.cases = {"gemm"};
        record.card.scope.platforms = {"sm90"};
        QVERIFY(!fieldsHtml(record).contains(QStringLiteral("verified")));
        record.verifications.push_back(
            {"2026-11-21T20:26:07Z", "layernorm/pocl/K00", "0123456789abcdef", 1, "correct", true, true});
        const QString html = fieldsHtml(record);
        QVERIFY(html.indexOf(QStringLiteral("layernorm")) > html.indexOf(QStringLiteral("Scope, verified")));
        QVERIFY(html.indexOf(QStringLiteral("layernorm")) < html.indexOf(QStringLiteral("Scope, claimed")));
        QVERIFY(html.indexOf(QStringLiteral("gemm")) > html.indexOf(QStringLiteral("Scope, claimed")));
    }

    void citationsLeadToTheirEvidence()
    {
        Workspace value = m_workspace->workspace();
        lineage::Lineage lineage;
        lineage.workload = "sgemm";
        lineage.platform = "pocl";
        value.lineages = {lineage};
        m_workspace->setWorkspace(value);
        auto *page = m_panel->findChild<QTextBrowser *>();
        emit page->anchorClicked(QUrl(QStringLiteral("cite:sgemm/pocl/K01")));
        QCOMPARE(m_selection->lineageKey(), QStringLiteral("sgemm/pocl"));
        QCOMPARE(m_selection->row(), QStringLiteral("K01"));
    }

    void everyTabHasAText()
    {
        auto *tabs = m_panel->findChild<QTabBar *>();
        for (int tab = 0; tab < tabs->count(); ++tab) {
            tabs->setCurrentIndex(tab);
            const auto *page = m_panel->findChild<QTextBrowser *>();
            const QString text = page->isVisible() ? page->toPlainText()
                                                   : m_panel->findChild<QPlainTextEdit *>()->toPlainText();
            QVERIFY2(!text.trimmed().isEmpty(), qPrintable(tabs->tabText(tab)));
        }
    }

    void noCardSaysWhatToDo()
    {
        m_selection->setCard({});
        QVERIFY(!button(m_panel.get(), QStringLiteral("Approve"))->isVisible());
    }

    void claimsAreReadAsGains_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::newRow("a factor") << "runs about 19.7× as fast" << 19.7 << 19.7;
        QTest::newRow("with its interval") << "Against K02: 1.24× (1.23–1.25); more" << 1.23 << 1.25;
        QTest::newRow("a range") << "brings 3.4–4.4× there" << 3.4 << 4.4;
        QTest::newRow("products are none") << "an 8 × 8 patch, m64n256k16, 2x2 of them" << 0.0 << 0.0;
    }

    void claimsAreReadAsGains()
    {
        QFETCH(QString, text);
        QFETCH(double, low);
        QFETCH(double, high);
        const auto gains = claimedGains(text);
        QCOMPARE(gains.size(), low > 0 ? std::size_t{1} : std::size_t{0});
        if (low <= 0)
            return;
        QCOMPARE(gains.front().low, low);
        QCOMPARE(gains.front().high, high);
        QVERIFY(bearsOut({low, low * 0.999, low * 1.001}, gains.front()));
        QVERIFY(!bearsOut({2 * high, 1.9 * high, 2.1 * high}, gains.front()));
    }

    void evidenceThatIsNotThereIsSaid()
    {
        const QString html = evidenceHtml(record(), m_workspace->workspace());
        QVERIFY(html.contains(QStringLiteral("sgemm/pocl/K01 is not in this workspace")));
        addEvidence();
        QVERIFY(!evidenceHtml(record(), m_workspace->workspace())
                     .contains(QStringLiteral("not in this workspace")));
    }

private:
    /// What the sample card cites, so that it may be saved.
    void addEvidence()
    {
        Workspace value = m_workspace->workspace();
        lineage::Lineage lineage;
        lineage.workload = "sgemm";
        lineage.platform = "pocl";
        lineage.states = {{"K00", "K00.cl", "naive", {}}, {"K01", "K01.cl", "tiles", {}}};
        lineage.transitions.push_back({"K00", "K01", "tiling", "k loop", "Stage tiles.", ""});
        lineage.attempts.push_back({"R01a", "K01", "R01a.cl", "other", "tiling", "k loop", "No.", ""});
        value.lineages = {lineage};
        m_workspace->setWorkspace(value);
    }

    const skills::CardRecord &record() const { return *m_workspace->card(QStringLiteral("tile-in-shared")); }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<WorkspaceModel> m_workspace;
    std::unique_ptr<Selection> m_selection;
    std::unique_ptr<CardReviewer> m_reviewer;
    std::unique_ptr<CardPanel> m_panel;
};

QTEST_MAIN(TestCardPanel)
#include "tst_cardpanel.moc"
