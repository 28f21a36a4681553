;;; check.el --- clients/emacs/memd.el in a real Emacs  -*- lexical-binding: t; -*-
;; In a project's directory.  MEMD_TEST_EXPECT is a word that some memory there has, MEMD_TEST_SAVE
;; a statement to save.
;;; Code:
(require 'ert)

(defun check-save (text sentence)
  "Save TEXT as a memory that says SENTENCE; return its path."
  (with-temp-buffer
    (insert text)
    (let ((said (memd-save-region (point-min) (point-max) sentence)))
      (string-match "[^ ]*\\.md" said)
      (match-string 0 said))))

(ert-deftest check-memd ()
  "What is saved is found, shown and taken back, and a refusal is an error."
  (let ((path (check-save "Swifts nest under the roof.\n" "swifts nest under the roof")))
    (memd-search "swifts roof")
    (with-current-buffer "*memd*"
      (should (equal (tabulated-list-get-id) path))
      (execute-kbd-macro (kbd "RET")))
    (with-current-buffer (format "*memd: %s*" path)
      (should (string-match-p "\nSwifts nest under the roof\\." (buffer-string)))
      (should buffer-read-only))
    (should (assoc path (memd-rows 'memories "list")))
    (should (string-match-p "no\\.md" (cadr (should-error (memd-show "no.md") :type 'user-error))))
    (memd-undo)
    (should-not (assoc path (memd-rows 'memories "list")))
    (memd-search (getenv "MEMD_TEST_EXPECT"))
    (with-current-buffer "*memd*"
      (should (tabulated-list-get-id)))
    (check-save (getenv "MEMD_TEST_SAVE") (getenv "MEMD_TEST_SAVE"))))
;;; check.el ends here
